"""Which device, which number type, how many threads."""

from __future__ import annotations

import os

import torch

from isogloss.engine.torch.process import has_cann

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

_SMALL = 4 * 2**30
"""Bytes up to which a CPU's memory and patience are not the question: then a request's answer had better not depend on
what else is in the batch, as it does in bfloat16."""


class DeviceUnavailableError(Exception):
    """The device asked for is not there. The text says what is missing."""


def choose_device(name: str) -> torch.device:
    """`auto` takes the accelerator if there is one, else the CPU; other names are torch's own
    (`cpu`, `cuda:0`, `npu`). Raises DeviceUnavailableError."""
    if name == "auto":
        return _accelerator() or torch.device("cpu")
    if name.partition(":")[0] == "npu":
        _require_cann()
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    # torch says "no such device" in each of these ways, by device and by how it was built.
    except (RuntimeError, AssertionError, ImportError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise DeviceUnavailableError(f"device {name!r} cannot be used: {reason}") from error
    return device


def _accelerator() -> torch.device | None:
    try:
        if torch.accelerator.is_available():
            return torch.accelerator.current_accelerator()
    # A back end whose driver is missing raises instead of answering "no".
    except (RuntimeError, ImportError):
        pass
    return None


def _require_cann() -> None:
    if not has_cann():
        raise DeviceUnavailableError(
            "device 'npu' needs the Ascend toolkit (CANN), which was not found: install it, or "
            "set ASCEND_HOME_PATH to where it is."
        )


def choose_dtype(name: str, device: torch.device, weight_bytes: int) -> torch.dtype:
    """`auto` takes bfloat16, but float32 for small models on a CPU and where the hardware does not compute in it.

    `weight_bytes` is the size of the weights as they are stored.
    """
    if name == "auto":
        native = device.type != "cpu" or (weight_bytes > _SMALL and _cpu_has_bf16())
        return torch.bfloat16 if native else torch.float32
    if name not in DTYPES:
        raise ValueError(f"dtype {name!r} is not one of auto, {', '.join(DTYPES)}")
    return DTYPES[name]


def _cpu_has_bf16() -> bool:
    # Private functions of torch: one that is gone counts as a no.
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    checks = (getattr(torch.cpu, name, None) for name in names)
    return any(check is not None and check() for check in checks)


def free_memory(device: torch.device) -> int:
    """Bytes that can still be allocated on a device, as far as it tells."""
    if device.type == "cpu":
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free, _ = torch.get_device_module(device).mem_get_info(device)
    return int(free)
