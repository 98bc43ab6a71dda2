"""The handlers over the scripted engine: texts, stops and measured times."""

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


@pytest.mark.parametrize(
    ("script", "fields", "text"),
    [
        ({"tokens": ["one STOP", "two"]}, {"stop": "STOP"}, "one "),
        ({"tokens": ["a", "b", "c"]}, {"stop": ["b"], "include_stop_str_in_output": True}, "ab"),
        ({"tokens": ["a", "b", "c"]}, {"stop_token_ids": [98]}, "a"),
        ({"tokens": ["a", "b", "c"]}, {"stop_token_ids": [98], "include_stop_str_in_output": True}, "ab"),
        ({"tokens": ["a", "b"]}, {"include_stop_str_in_output": True}, "ab"),
        ({"bytes_hex": ["20c4", "8fc3", "a1626c"]}, {}, " ďábl"),
        ({"tokens": ["a"]}, {"skip_special_tokens": False}, "a"),
    ],
)
async def test_text_tokens_and_stream_agree(scripted, script, fields, text):
    fields = {"max_tokens": 20, "logprobs": True, "hints": hints(**script), **fields}
    (choice,) = (await scripted.ask(**fields))["choices"]
    assert choice["finish_reason"] == "stop"
    chunks = [chunk["choices"][0] for chunk in await scripted.chunks(**fields)]
    streamed = [entry["token"] for chunk in chunks for entry in chunk["logprobs"]["content"]]
    whole = [entry["token"] for entry in choice["logprobs"]["content"]]
    assert choice["message"]["content"] == text == "".join(whole)
    assert "".join(chunk["delta"]["content"] for chunk in chunks) == text
    assert streamed == whole


@pytest.mark.parametrize("fields", [{}, {"n": 3, "seed": 5}, {"best_of": 2, "seed": 1, "stop": [" the", "e"]}])
async def test_one_figure_per_token_of_the_longest_sequence(scripted, fields):
    body = await scripted.ask(max_tokens=9, logprobs=True, **fields)
    lengths = [len(choice["logprobs"]["content"]) for choice in body["choices"]]
    usage = body["usage"]
    assert usage["completion_tokens"] == sum(lengths)
    assert len(usage["batch_size"]) == len(usage["queue_wait_time"]) == max(lengths)
    assert len(body["decode_time_arr"]) == max(lengths) - 1


async def test_times_are_measured(scripted):
    body = await scripted.ask(hints=hints(tokens=["a", "b", "c"], delay_ms_first=40, delay_ms_each=10))
    assert body["prefill_time"] >= 39
    assert min(body["decode_time_arr"]) >= 9
    assert max(body["usage"]["queue_wait_time"]) < 9000


async def test_several_tokens_a_step(scripted):
    """A stop string may end a sequence within a step: no figures for tokens that were never seen."""
    body = await scripted.ask(
        hints=hints(tokens=[], tool_calls=[{"name": "f", "arguments": "{}"}], one_delta=True), stop="name"
    )
    count = body["usage"]["completion_tokens"]
    assert len(body["usage"]["batch_size"]) == len(body["usage"]["queue_wait_time"]) == count
    assert len(body["decode_time_arr"]) == count - 1


async def test_same_seed_same_answer(scripted):
    first, second = [await scripted.ask(seed=18446744073709551615, max_tokens=8) for _ in range(2)]
    assert first["choices"] == second["choices"]
