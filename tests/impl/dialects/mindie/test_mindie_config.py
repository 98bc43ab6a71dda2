"""MindIE's configuration file: what is read of it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from isogloss.dialects.mindie_config import MindIEConfig, MindIEConfigError, load_mindie_config

FULL = {
    "Version": "1.0.0",
    "LogConfig": {"logLevel": "Info"},
    "ServerConfig": {
        "ipAddress": "127.0.0.1",
        "port": 1025,
        "fullTextEnabled": True,
        "openAiSupport": "vllm",
        "maxRequestLength": 2,
    },
    "BackendConfig": {
        "npuDeviceIds": [[0, 1]],
        "ModelDeployConfig": {
            "maxSeqLen": 2560,
            "maxInputTokenLen": 2048,
            "truncation": False,
            "ModelConfig": [{"modelName": "llama3-70b", "modelWeightPath": "/weights", "worldSize": 2}],
            "LoraModules": [],
        },
        "ScheduleConfig": {"maxIterTimes": 300, "maxBatchSize": 200},
    },
}


def server(**keys):
    return {"ServerConfig": keys}


def deploy(**keys):
    return {"BackendConfig": {"ModelDeployConfig": keys}}


@pytest.fixture
def load(tmp_path):
    def load(content):
        path = tmp_path / "config.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return load_mindie_config(path)

    return load


def test_a_whole_file(load):
    assert load(FULL) == MindIEConfig(
        model_name="llama3-70b",
        max_seq_len=2560,
        max_input_token_len=2048,
        max_iter_times=300,
        truncation=False,
        full_text=True,
        body_limit=2 * 2**20,
    )


@pytest.mark.parametrize("content", [{}, {"ServerConfig": {}}, {"BackendConfig": {"ModelDeployConfig": {}}}])
def test_missing_keys_are_defaults(load, content):
    assert load(content) == MindIEConfig(max_seq_len=2560, max_input_token_len=2048)


def test_adapters(load):
    module = {"name": "a", "path": "/lora/a", "baseModelName": "m"}
    inner = {"name": "b", "path": "/lora/b"}
    config = load(deploy(LoraModules=[module], ModelConfig=[{"modelName": "m", "LoraModules": [inner]}]))
    assert config.adapters == {"a": Path("/lora/a"), "b": Path("/lora/b")}


@pytest.mark.parametrize(("value", "wanted"), [(True, True), (0, False), (1, True)])
def test_truncation_may_be_a_number(load, value, wanted):
    assert load(deploy(truncation=value)).truncation is wanted


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (deploy(maxSeqLen=0), "BackendConfig.ModelDeployConfig.maxSeqLen"),
        (deploy(maxSeqLen="2560"), "BackendConfig.ModelDeployConfig.maxSeqLen"),
        (deploy(maxInputTokenLen=4194305), "BackendConfig.ModelDeployConfig.maxInputTokenLen"),
        (deploy(ModelConfig=[{}]), "BackendConfig.ModelDeployConfig.ModelConfig.0.modelName"),
        (deploy(ModelConfig=[{"modelName": "-x"}]), "BackendConfig.ModelDeployConfig.ModelConfig.0.modelName"),
        (deploy(ModelConfig=[{"modelName": "a"}, {"modelName": "b"}]), "BackendConfig.ModelDeployConfig.ModelConfig"),
        (deploy(LoraModules=[{"name": "a"}]), "BackendConfig.ModelDeployConfig.LoraModules.0.path"),
        (deploy(LoraModules=[{"name": "a b", "path": "p"}]), "BackendConfig.ModelDeployConfig.LoraModules.0.name"),
        (deploy(LoraModules=[{"name": "a", "path": "p"}] * 2), "BackendConfig.ModelDeployConfig.LoraModules"),
        (deploy(LoraModules=[{"name": "m", "path": "p"}], ModelConfig=[{"modelName": "m"}]), "LoraModules"),
        (
            deploy(LoraModules=[{"name": "a", "path": "p", "baseModelName": "x"}], ModelConfig=[{"modelName": "m"}]),
            "BackendConfig.ModelDeployConfig.LoraModules: baseModelName",
        ),
        ({"BackendConfig": {"ScheduleConfig": {"maxIterTimes": 0}}}, "BackendConfig.ScheduleConfig.maxIterTimes"),
        (server(fullTextEnabled="yes"), "ServerConfig.fullTextEnabled"),
        (server(openAiSupport="openai"), "ServerConfig.openAiSupport"),
        (server(maxRequestLength=101), "ServerConfig.maxRequestLength"),
        ({"ServerConfig": []}, "ServerConfig"),
        ([], "the file"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_errors_name_file_and_key(load, content, key):
    with pytest.raises(MindIEConfigError) as caught:
        load(content)
    assert "config.json" in str(caught.value)
    assert key in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MindIEConfigError, match=r"none\.json cannot be read: No such file"):
        load_mindie_config(tmp_path / "none.json")
