"""Atoma: what is its own, beside what all completions share."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from isogloss.dialects.atoma import fingerprint
from isogloss.engine.api import EngineStatus
from isogloss.engine.scripted import ScriptedEngine
from isogloss_spec.faults import Fault


@pytest.fixture
def dialect():
    return "atoma"


async def test_members_of_the_answer(caller, engine):
    body = await caller.ask()
    assert (body["object"], body["model"], body["id"][:5]) == ("text_completion", "fake", "cmpl-")
    assert body["system_fingerprint"] == fingerprint(engine)
    assert body["choices"] == [{"text": "ok", "index": 0, "finish_reason": "length", "logprobs": None}]
    assert body["usage"] == {
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "total_tokens": 4,
        "completion_tokens_details": {
            "accepted_prediction_tokens": 0,
            "audio_tokens": 0,
            "reasoning_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 0},
    }


async def test_cached_tokens(calling, playing, spell):
    body = await calling(playing(spell(cached=2)), "atoma").ask()
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 2


def test_the_fingerprint_names_engine_and_model(engine):
    first = fingerprint(engine)
    assert re.fullmatch("fp_[0-9a-f]{12}", first)
    engine.card = replace(engine.card, created=engine.card.created + 1)
    assert fingerprint(engine) == first
    engine.card = replace(engine.card, layers=3)
    assert fingerprint(engine) != first
    assert fingerprint(ScriptedEngine("one")) != fingerprint(ScriptedEngine("other"))


async def test_defaults_switch_everything_off(caller, engine):
    await caller.ask()
    (request,) = engine.requests
    assert (request.n, request.logprobs, request.prompt_logprobs, request.priority) == (1, None, None, 0)
    assert (request.sampling.temperature, request.sampling.top_p, request.sampling.seed) == (1, 1, None)
    assert (request.stopping.max_tokens, request.stopping.stop) == (16, ())
    assert request.skip_special_tokens


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("temperature", 0.5, "temperature"),
        ("top_p", 0, "top_p"),
        ("presence_penalty", 1.5, "presence_penalty"),
        ("frequency_penalty", -1.5, "frequency_penalty"),
        ("seed", -5, "seed"),
    ],
)
async def test_sampling(caller, engine, field, value, name):
    await caller.ask(**{field: value})
    assert getattr(engine.requests[0].sampling, name) == value


async def test_other_fields(caller, engine):
    await caller.ask(logit_bias={"3": 1.5}, max_tokens=3, stop=["a", "b"], n=2, logprobs=20, user="u", unknown=1)
    (request,) = engine.requests
    assert request.sampling.logit_bias == {3: 1.5}
    assert (request.stopping.max_tokens, request.stopping.stop) == (3, ("a", "b"))
    assert (request.n, request.logprobs) == (2, 20)


async def test_top_p_of_0_takes_the_likeliest_token(calling):
    engine = ScriptedEngine()
    await engine.start()
    caller = calling(engine, "atoma")
    certain = await caller.ask(top_p=0)
    greedy = await caller.ask(temperature=0)
    assert certain["choices"] == greedy["choices"]


async def test_echo_in_a_stream_comes_first_in_each_choice(caller):
    chunks = await caller.chunks(prompt=["ab", "c"], n=2, echo=True)
    assert all(chunk["system_fingerprint"].startswith("fp_") for chunk in chunks)
    for index, prompt in enumerate(["ab", "ab", "c", "c"]):
        own = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
        assert [choice["text"] for choice in own] == [prompt, "o", "k"]
        assert [choice["finish_reason"] for choice in own] == [None, None, "length"]


async def test_echo_in_a_stream_has_logprobs(caller):
    chunks = await caller.chunks(echo=True, logprobs=1)
    lists = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    assert [part["tokens"] for part in lists] == [["H", "i"], ["o"], ["k"]]
    assert [part["text_offset"] for part in lists] == [[0, 1], [2], [3]]
    assert lists[0]["token_logprobs"] == [None, -1.0]


async def test_usage_of_a_stream(caller):
    chunks = await caller.chunks(stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None, None]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == 4


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}])
async def test_no_usage_without_asking_for_it(caller, options):
    chunks = await caller.chunks(stream_options=options)
    assert all("usage" not in chunk and chunk["choices"] for chunk in chunks)


async def test_health(caller, engine):
    engine.snapshot = EngineStatus(ready=False, running=0, waiting=0)
    with pytest.raises(Fault):
        await caller.dialect.routes.health_ready(None)
