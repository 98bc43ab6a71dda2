"""Adapters from the settings to what clients see, in every dialect."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from isogloss.cli import main
from isogloss.engine.api import Event, GenerationRequest
from isogloss.engine.scripted import ScriptedEngine
from isogloss.server import StartError, make_app, make_engine
from isogloss.settings import Settings

MINDIE = {
    "BackendConfig": {
        "ModelDeployConfig": {
            "ModelConfig": [{"modelName": "llama"}],
            "LoraModules": [{"name": "poet", "path": "/nowhere"}],
        }
    }
}
BODIES: dict[str, dict[str, Any]] = {
    "nim/v1/completions": {"prompt": "hi", "max_tokens": 2},
    "atoma/v1/completions": {"prompt": ["hi", "ho"], "max_tokens": 2},
    "acs/v1/completions": {"prompt": "hi", "max_tokens": 2},
    "mindie/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2},
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MINDIE))
    return Settings(engine="scripted", adapter=("mine=/somewhere",), mindie_config=path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[GenerationRequest]:
    """What the engine was asked."""
    requests: list[GenerationRequest] = []
    original = ScriptedEngine.generate

    def generate(self: ScriptedEngine, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        requests.append(request)
        return original(self, request)

    monkeypatch.setattr(ScriptedEngine, "generate", generate)
    return requests


@pytest.fixture
async def client(settings: Settings) -> AsyncGenerator[httpx.AsyncClient, None]:
    engine = make_engine(settings)
    await engine.start()
    transport = httpx.ASGITransport(make_app(settings, engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client
    await engine.stop()


@pytest.mark.parametrize("path", BODIES)
async def test_the_model_of_a_request_chooses(
    client: httpx.AsyncClient, asked: list[GenerationRequest], path: str
) -> None:
    base = "llama" if path.startswith("mindie") else "scripted"
    for name, adapter in (("mine", "mine"), ("poet", "poet"), (base, None)):
        asked.clear()
        answer = await client.post(path, json=BODIES[path] | {"model": name})
        assert (answer.status_code, answer.json()["model"]) == (200, name)
        assert {request.adapter for request in asked} == {adapter}
    asked.clear()
    unknown = await client.post(path, json=BODIES[path] | {"model": "poets"})
    assert unknown.status_code == {"nim": 404, "atoma": 400, "acs": 400, "mindie": 422}[path.partition("/")[0]]
    assert not asked


@pytest.mark.parametrize(("mount", "base"), [("", "scripted"), ("/acs", "scripted"), ("/mindie", "llama")])
async def test_they_are_listed_behind_their_model(client: httpx.AsyncClient, mount: str, base: str) -> None:
    entries = (await client.get(f"{mount}/v1/models")).json()["data"]
    assert [(entry["id"], entry.get("root")) for entry in entries] == [(base, None), ("mine", base), ("poet", base)]


@pytest.mark.parametrize("name", ["poet", "llama"])
def test_a_name_that_mindies_configuration_has_is_refused(settings: Settings, name: str) -> None:
    with pytest.raises(StartError, match="same name"):
        make_engine(settings.model_copy(update={"adapter": (f"{name}=/x",)}))


def test_the_option_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr("isogloss.server.serve", lambda settings, announce: seen.append(settings))
    assert main(["serve", "--adapter", "a=/x", "--adapter", "b=/y"]) == 0
    assert seen[0].adapters() == {"a": Path("/x"), "b": Path("/y")}
