from __future__ import annotations

import pytest
import torch
from support.media_models import BUILDERS, Model


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("multimodal")
    return {name: Model(name, build(root / name)) for name, build in BUILDERS.items()}


@pytest.fixture(scope="session")
def sees(models: dict[str, Model]) -> Model:
    return models["qwen2_vl"]


@pytest.fixture(scope="session")
def hears(models: dict[str, Model]) -> Model:
    return models["qwen2_audio"]


@pytest.fixture(scope="session", params=["qwen2_vl", "qwen2_5_vl"])
def seeing(request: pytest.FixtureRequest, models: dict[str, Model]) -> Model:
    return models[request.param]
