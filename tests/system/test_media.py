"""Pictures, films and sound through a whole server, for each kind of model that takes them."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import isogloss_api
import numpy as np
import pytest
import soundfile
from isogloss_spec.ledger import ledger
from isogloss_spec.pairs import Pairs
from PIL import Image
from support.server import Server
from support.tiny_models import tiny_qwen2_audio, tiny_qwen2_vl

KINDS = {"scripted": {"image", "video", "audio"}, "qwen2_vl": {"image", "video"}, "qwen2_audio": {"audio"}}
MODELS = {"qwen2_vl": tiny_qwen2_vl, "qwen2_audio": tiny_qwen2_audio}


@pytest.fixture(scope="module", params=KINDS)
def served(request: Any, start: Callable[..., Any], tmp_path_factory: Any) -> Iterator[tuple[Server, set[str]]]:
    """A server, and the kinds of media that its model takes."""
    name, folder = request.param, tmp_path_factory.mktemp("model")
    options = ["--engine", "scripted"] if name == "scripted" else ["--model", str(MODELS[name](folder))]
    with start(*options, "--model-name", "m", "--threads", "1", "--dtype", "fp32") as server:
        yield server, KINDS[name]


def picture(value: int) -> dict[str, str]:
    pixels = np.random.default_rng(value).integers(0, 255, (64, 96, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return {"image_url": f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"}


def sound(value: int) -> dict[str, Any]:
    file = io.BytesIO()
    soundfile.write(file, np.random.default_rng(value).normal(0, 0.2, 16_000), 16_000, format="wav")
    return {"input_audio": {"data": base64.b64encode(file.getvalue()).decode(), "format": "wav"}}


def film(_: int) -> dict[str, str]:
    """The film that the documents' library makes."""
    document = isogloss_api.document("mindie")
    entry = next(entry for entry in ledger(document) if entry.id.endswith(".video_url/formats"))
    (body,) = Pairs(document, "create_chat_completion").of(entry).accept
    return body["messages"][-1]["content"][-1]


MADE = {"image": picture, "audio": sound, "video": film}


def body(*parts: Any, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": [*parts, {"type": "text", "text": "What is this?"}]}]
    return {"model": "m", "messages": messages, "max_tokens": 8, "temperature": 0, **fields}


@pytest.mark.parametrize("kind", MADE)
def test_what_a_model_takes_changes_its_answer(served: tuple[Server, set[str]], kind: str) -> None:
    server, kinds = served
    with server.client() as client:

        def asked(*parts: Any, **fields: Any) -> Any:
            return client.post("/mindie/v1/chat/completions", json=body(*parts, **fields))

        first = asked(MADE[kind](1), logprobs=True)
        if kind not in kinds:
            assert (first.status_code, f"({kind})" in first.text) == (422, True)
            return
        same, other, none = (
            asked(MADE[kind](1), logprobs=True),
            asked(MADE[kind](2), logprobs=True),
            asked(logprobs=True),
        )
        assert {answer.status_code for answer in (first, same, other, none)} == {200}
        shown = [answer.json() for answer in (first, same, other, none)]
        scores = [[entry["logprob"] for entry in answer["choices"][0]["logprobs"]["content"]] for answer in shown]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)
        assert scores[0] != pytest.approx(scores[3], abs=1e-4)
        if kind != "video":
            assert scores[0] != pytest.approx(scores[2], abs=1e-4)
        lengths = [answer["usage"]["prompt_tokens"] for answer in shown]
        assert lengths[0] == lengths[1] == lengths[2] > lengths[3]


def test_a_stream_and_a_whole_answer_are_the_same(served: tuple[Server, set[str]]) -> None:
    server, kinds = served
    part = MADE["audio" if "audio" in kinds else "image"](3)
    with server.client() as client:
        whole = client.post("/mindie/v1/chat/completions", json=body(part)).json()["choices"][0]["message"]["content"]
        streamed = client.post("/mindie/v1/chat/completions", json=body(part, stream=True)).text
    events = [line.removeprefix("data: ") for line in streamed.splitlines() if line.startswith("data: {")]
    assert "".join(json.loads(event)["choices"][0]["delta"]["content"] for event in events) == whole


def test_decoders_end_with_the_server(start: Callable[..., Any]) -> None:
    with start("--engine", "scripted", "--model-name", "m") as server:
        with server.client() as client:
            assert client.post("/mindie/v1/chat/completions", json=body(picture(1))).status_code == 200
        children = [
            pid for file in Path(f"/proc/{server.pid}/task").glob("*/children") for pid in file.read_text().split()
        ]
        assert children
    assert not [child for child in children if is_alive(child)]


def is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True
