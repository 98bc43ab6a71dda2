"""The handlers over the scripted engine: what clients see of stops, ends, characters and choices."""

from __future__ import annotations

import base64
import json

import pytest
from isogloss.engine.scripted import ScriptedEngine


@pytest.fixture
async def scripted(calling):
    engine = ScriptedEngine()
    await engine.start()
    yield calling(engine)
    await engine.stop()


def hints(**script):
    return {"x-isogloss-script": base64.b64encode(json.dumps(script).encode()).decode()}


def streamed(chunks):
    texts, names = {}, {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
            names.setdefault(choice["index"], []).extend((choice["logprobs"] or {"tokens": []})["tokens"])
    return texts, names


@pytest.mark.parametrize(
    ("script", "fields", "text", "reason"),
    [
        ({"tokens": ["A tall ap", "ple", " tree", " x"]}, {"stop": ["ple tree"]}, "A tall ap", "ple tree"),
        ({"tokens": ["a <|", "en", "d of", " it"]}, {"stop": ["<|end|>"]}, "a <|end of it", None),
        ({"tokens": ["one two STOPthree", "four"]}, {"stop": "STOP"}, "one two ", "STOP"),
        ({"tokens": ["a", "b", "c"]}, {"stop": "b", "include_stop_str_in_output": True}, "ab", "b"),
        ({"tokens": ["a", "b", "a", "b"]}, {"stop": "b", "min_tokens": 3}, "aba", "b"),
        ({"bytes_hex": ["20f09f", "a68a", "20", "e2889e"]}, {}, " 🦊 ∞", None),
        ({"bytes_hex": ["48", "69", "f09f98", "80"]}, {}, "Hi😀", None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_text_and_logprobs_agree(scripted, script, fields, text, reason, stream):
    fields = {"max_tokens": 20, "logprobs": 1, "hints": hints(**script), **fields}
    if stream:
        chunks = await scripted.chunks(**fields)
        (found,), (names,) = (list(part.values()) for part in streamed(chunks))
        last = chunks[-1]["choices"][0]
    else:
        last = (await scripted.ask(**fields))["choices"][0]
        found, names = last["text"], last["logprobs"]["tokens"]
    assert found == "".join(names) == text
    assert (last["finish_reason"], last["stop_reason"]) == ("stop", reason)


@pytest.mark.parametrize("fields", [{"seed": 3, "n": 3, "logprobs": 2}, {"temperature": 0, "logprobs": 0}])
async def test_stream_equals_whole(scripted, fields):
    fields = {"prompt": ["Once", "Über"], "max_tokens": 12, "stop": [" the"], **fields}
    body = await scripted.ask(**fields)
    texts, names = streamed(await scripted.chunks(**fields))
    assert [texts[choice["index"]] for choice in body["choices"]] == [choice["text"] for choice in body["choices"]]
    assert [names[choice["index"]] for choice in body["choices"]] == [
        choice["logprobs"]["tokens"] for choice in body["choices"]
    ]


async def test_the_last_entry_of_an_echo_with_one_token_is_the_generated_one(scripted):
    """Evaluation harnesses score a text with one generated token and drop the last entry, also if it ends the text."""
    fields = {"prompt": "A fox", "echo": True, "logprobs": 1, "max_tokens": 1}
    body = await scripted.ask(hints=hints(tokens=[]), **fields)
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "stop"
    assert len(choice["logprobs"]["tokens"]) == body["usage"]["prompt_tokens"] + 1
    assert "".join(choice["logprobs"]["tokens"][:-1]) == choice["text"] == "A fox"


async def test_leaving_a_stream_frees_the_engine(scripted, calling):
    engine = ScriptedEngine()
    await engine.start()
    stream = await calling(engine).answer(stream=True, prompt=["a", "b"], max_tokens=4000)
    await anext(stream.events)
    assert engine.status().running == 2
    await stream.events.aclose()
    assert engine.status().running == 0
