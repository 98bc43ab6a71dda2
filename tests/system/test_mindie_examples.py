"""The requests that MindIE's manual shows, with their placeholders filled in, against a running server."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from isogloss_api import document
from jsonschema_rs import Draft202012Validator, Registry
from support.media_files import film, picture, sound
from support.server import Server, serving

EXAMPLES = json.loads((Path(__file__).parents[1] / "examples" / "mindie.json").read_text())["requests"]
PICTURES = ("image format 1", "image format 2", "image format 3", "image format 4")
REGISTRY = Registry([("urn:mindie", document("mindie"))])


def valid(name: str, body: Any) -> None:
    Draft202012Validator({"$ref": f"urn:mindie#/components/schemas/{name}"}, registry=REGISTRY).validate(body)


MEDIA = {
    "image": ("demo.png", "image/jpeg", picture("jpeg")),
    "video": ("demo.mp4", "video/mp4", film()),
    "audio": ("demo.wav", "audio/x-wav", sound()),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("mindie-examples")
    media = folder / "media"
    media.mkdir()
    for name, _, content in MEDIA.values():
        (media / name).write_bytes(content)
    with serving(folder, "--engine", "scripted", "--media-folder", str(media)) as running:
        yield running


def ask(server: Server, body: Any) -> httpx.Response:
    with server.client() as client:
        answer = client.post("/mindie/v1/chat/completions", json=body | {"model": "scripted"})
    assert answer.status_code == 200, answer.text
    return answer


def check(answer: httpx.Response, body: Any) -> None:
    if not body["stream"]:
        valid("ChatCompletion", answer.json())
        return
    *events, last = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert last == "[DONE]"
    for event in events:
        valid("ChatChunk", json.loads(event))


def filled(body: Any, kind: str = "image") -> Any:
    """The example with another kind of media in the place of its picture, and data in the place of its placeholder."""
    name, mime, content = MEDIA[kind]
    data = base64.b64encode(content).decode()
    text = json.dumps(body).replace("demo.png", name).replace("image_url", f"{kind}_url")
    text = text.replace("data:image/jpeg;base64,{image_base64}", f"data:{mime};base64,{data}")
    return json.loads(text.replace("{audio_base64_data}", data))


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in PICTURES])
def test_a_request_of_the_manual(server: Server, name: str) -> None:
    body = filled(copy.deepcopy(EXAMPLES[name]), "audio" if name == "input audio" else "image")
    check(ask(server, body), body)


@pytest.mark.parametrize("kind", MEDIA)
@pytest.mark.parametrize("name", PICTURES)
def test_a_spelling_of_the_manual_for_each_kind(server: Server, name: str, kind: str) -> None:
    body = filled(copy.deepcopy(EXAMPLES[name]), kind)
    assert f"{kind}_url" in json.dumps(body)
    check(ask(server, body), body)


def test_a_first_chunk_of_each_sequence_comes_before_the_second_of_any(server: Server) -> None:
    body = EXAMPLES["streaming text"]
    chunks = [json.loads(line[6:]) for line in ask(server, body).text.splitlines() if line.startswith("data: {")]
    assert [chunk["choices"][0]["index"] for chunk in chunks[:2]] == [0, 1]
    assert sum(chunk["choices"][0]["finish_reason"] is not None for chunk in chunks) == body["n"]
