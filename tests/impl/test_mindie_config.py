"""The setting `mindie_config`: from a file to what clients see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from isogloss.server import StartError, make_app, make_engine, serve
from isogloss.settings import Settings


def written(folder: Path, content: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(content))
    return path


async def test_it_holds_for_mindie_alone(tmp_path: Path) -> None:
    config = {
        "ServerConfig": {"maxRequestLength": 1},
        "BackendConfig": {"ModelDeployConfig": {"ModelConfig": [{"modelName": "llama3-70b"}]}},
    }
    settings = Settings(engine="scripted", dialects=("nim", "mindie"), mindie_config=written(tmp_path, config))
    engine = make_engine(settings)
    await engine.start()
    transport = httpx.ASGITransport(make_app(settings, engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

        async def ask(model: str, text: str = "hi") -> httpx.Response:
            body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 2}
            return await client.post("/mindie/v1/chat/completions", json=body)

        assert (await ask("llama3-70b")).json()["model"] == "llama3-70b"
        assert (await ask("scripted")).status_code == 422
        assert (await ask("llama3-70b", "x" * 2**20)).status_code == 413
        assert (await client.get("/mindie/v1/models")).json()["data"][0]["id"] == "llama3-70b"
        assert (await client.get("/nim/v1/models")).json()["data"][0]["id"] == "scripted"
        long = {"model": "scripted", "prompt": "x" * 2**20, "max_tokens": 2}
        assert (await client.post("/nim/v1/completions", json=long)).status_code != 413
    await engine.stop()


@pytest.mark.parametrize("content", [{"ServerConfig": {"openAiSupport": "openai"}}, {"ServerConfig": 1}])
def test_a_wrong_file_is_told_of_before_anything_is_loaded(
    tmp_path: Path, content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("an engine was made")

    monkeypatch.setattr("isogloss.server.make_engine", never)
    settings = Settings(engine="scripted", port=0, mindie_config=written(tmp_path, content))
    with pytest.raises(StartError, match=r"^mindie_config: .*config\.json: ServerConfig"):
        serve(settings, never)
