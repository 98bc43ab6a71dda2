"""What each field of a request asks of the engine."""

from __future__ import annotations

import pytest


async def test_defaults_switch_everything_off(caller, engine):
    await caller.ask()
    (request,) = engine.requests
    assert request.prompt == engine.tokenizer.encode("Hi")
    assert (request.n, request.logprobs, request.prompt_logprobs) == (1, None, None)
    sampling, stopping = request.sampling, request.stopping
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (1, 1, 0, 0)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (0, 0, 1)
    assert (sampling.logit_bias, sampling.seed) == ({}, None)
    assert (stopping.max_tokens, stopping.min_tokens, stopping.stop) == (16, 0, ())
    assert not stopping.include_stop
    assert not stopping.ignore_eos


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"3": 1.5, "4": -2}, {3: 1.5, 4: -2}),
        ({}, {}),
    ],
)
async def test_logit_bias(caller, engine, value, wanted):
    await caller.ask(logit_bias=value)
    assert engine.requests[0].sampling.logit_bias == wanted


async def test_null_max_tokens_is_the_default(caller, engine):
    await caller.ask(max_tokens=None)
    assert engine.requests[0].stopping.max_tokens == 16


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, None),
        ({"logprobs": 2}, None),
        ({"echo": True}, None),
        ({"echo": True, "logprobs": 2}, 2),
        ({"echo": True, "logprobs": 0}, 0),
        ({"prompt_logprobs": 3}, 3),
        ({"prompt_logprobs": 0}, 0),
        ({"echo": True, "logprobs": 2, "prompt_logprobs": 1}, 2),
        ({"echo": True, "logprobs": 2, "prompt_logprobs": 9}, 9),
    ],
)
async def test_prompt_is_scored_only_for_an_answer_that_shows_it(caller, engine, fields, wanted):
    await caller.ask(**fields)
    assert engine.requests[0].prompt_logprobs == wanted


async def test_stream_never_scores_the_prompt(caller, engine):
    await caller.chunks(prompt_logprobs=0)
    assert engine.requests[0].prompt_logprobs is None


async def test_every_prompt_has_the_same_seed_and_its_own_request_id(caller, engine):
    await caller.ask(prompt=["a", "b"], n=3, seed=9)
    first, second = engine.requests
    assert first.n == second.n == 3
    assert first.sampling.seed == second.sampling.seed == 9
    assert first.request_id != second.request_id
    assert "the-client's-id" not in first.request_id


async def test_hints_reach_the_engine(caller, engine):
    await caller.answer(hints={"x-isogloss-script": "abc"})
    assert engine.requests[0].hints == {"x-isogloss-script": "abc"}
