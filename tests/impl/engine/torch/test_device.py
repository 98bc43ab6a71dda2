from __future__ import annotations

from pathlib import Path

import pytest
import torch
from isogloss.engine.torch import device as devices
from isogloss.engine.torch.device import DeviceUnavailableError, choose_device, choose_dtype
from isogloss.engine.torch.process import has_cann, prepare_process


def test_auto_takes_the_accelerator_else_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    assert choose_device("auto").type == "cuda"


@pytest.mark.parametrize("error", [RuntimeError, ImportError])
def test_auto_survives_a_back_end_without_its_driver(monkeypatch, error):
    def broken() -> bool:
        raise error("libhccl.so")

    monkeypatch.setattr(torch.accelerator, "is_available", broken)
    assert choose_device("auto").type == "cpu"


@pytest.mark.parametrize("name", ["xpu", "nonsense", "npu"])
def test_a_missing_device_is_named(monkeypatch, name):
    monkeypatch.setattr(devices, "has_cann", lambda: True)
    with pytest.raises(DeviceUnavailableError, match=name):
        choose_device(name)


def test_an_npu_without_its_toolkit_says_so(monkeypatch):
    monkeypatch.setattr(devices, "has_cann", lambda: False)
    with pytest.raises(DeviceUnavailableError, match="CANN"):
        choose_device("npu:0")


def test_dtypes(monkeypatch):
    cpu, other, small, large = torch.device("cpu"), torch.device("meta"), 2**30, 2**34
    for native, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda native=native: native)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
        assert choose_dtype("auto", cpu, large) == expected
        assert choose_dtype("auto", cpu, small) == torch.float32
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert choose_dtype("auto", cpu, large) == torch.float32
    assert choose_dtype("auto", other, small) == torch.bfloat16
    assert choose_dtype("fp16", cpu, small) == torch.float16
    with pytest.raises(ValueError, match="int3"):
        choose_dtype("int3", cpu, small)


def test_torch_npu_is_loaded_only_where_it_can_be(tmp_path):
    assert not has_cann({}, tmp_path / "none")
    assert has_cann({"ASCEND_HOME_PATH": "/opt/ascend"}, tmp_path / "none")
    assert has_cann({}, tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"HF_HUB_OFFLINE": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}),
        ({"ASCEND_HOME_PATH": "/opt/ascend"}, {"ASCEND_HOME_PATH": "/opt/ascend", "HF_HUB_OFFLINE": "1"}),
        ({"HF_HUB_OFFLINE": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}, None),
    ],
)
@pytest.mark.skipif(Path("/usr/local/Ascend").is_dir(), reason="the Ascend toolkit is installed")
def test_the_process_is_prepared_and_the_user_obeyed(before, after):
    environ = dict(before)
    prepare_process(environ)
    assert environ == (before if after is None else after)
