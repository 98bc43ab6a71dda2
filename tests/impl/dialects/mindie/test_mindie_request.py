"""What each field of a request asks of the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from isogloss.dialects.mindie_config import MindIEConfig

PROMPT = 26
"""Tokens of the message "Hi" in the scripted engine's template."""


async def test_defaults(caller, engine):
    await caller.ask()
    (request,) = engine.requests
    assert request.prompt == engine.tokenizer.encode_chat([{"role": "user", "content": "Hi"}])
    assert len(request.prompt) == PROMPT
    assert (request.n, request.logprobs, request.prompt_logprobs) == (1, None, None)
    assert request.skip_special_tokens
    sampling, stopping = request.sampling, request.stopping
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (1, 1, 1000, 0)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (0, 0, 1)
    assert (dict(sampling.logit_bias), sampling.seed) == ({}, None)
    assert (stopping.max_tokens, stopping.min_tokens, stopping.stop) == (64 - PROMPT, 0, ())
    assert (stopping.stop_token_ids, stopping.include_stop, stopping.ignore_eos) == (frozenset(), False, False)


@pytest.mark.parametrize(
    ("field", "value", "name", "wanted"),
    [
        ("temperature", 0.5, "temperature", 0.5),
        ("temperature", 0, "temperature", 0),
        ("top_p", 0.25, "top_p", 0.25),
        ("top_k", 7, "top_k", 7),
        ("top_k", -1, "top_k", 0),
        ("top_k", 2147483647, "top_k", 2147483647),
        ("top_k", None, "top_k", 1000),
        ("presence_penalty", 1.5, "presence_penalty", 1.5),
        ("frequency_penalty", -1.5, "frequency_penalty", -1.5),
        ("repetition_penalty", 1.25, "repetition_penalty", 1.25),
        ("seed", 18446744073709551615, "seed", 18446744073709551615),
    ],
)
async def test_sampling(caller, engine, field, value, name, wanted):
    await caller.ask(**{field: value})
    assert getattr(engine.requests[0].sampling, name) == wanted


@pytest.mark.parametrize("top_k", [0, 20])
async def test_the_models_own_top_k(caller, engine, top_k):
    engine.card = replace(engine.card, top_k=top_k)
    await caller.ask()
    assert engine.requests[0].sampling.top_k == top_k


@pytest.mark.parametrize(
    ("fields", "name", "wanted"),
    [
        ({"max_tokens": 3}, "max_tokens", 3),
        ({"max_tokens": None}, "max_tokens", 64 - PROMPT),
        ({"max_tokens": 2147483647}, "max_tokens", 64 - PROMPT),
        ({"stop": "end"}, "stop", ("end",)),
        ({"stop": ["a", "b"]}, "stop", ("a", "b")),
        ({"stop": []}, "stop", ()),
        ({"stop_token_ids": [2, 13, -5]}, "stop_token_ids", {2, 13, -5}),
        (
            {"stop_token_ids": [2147483647, 2147483648, -2147483649, 1.5, "7", True, [3], {"a": 4}]},
            "stop_token_ids",
            {2147483647},
        ),
        ({"stop_token_ids": None}, "stop_token_ids", frozenset()),
        ({"include_stop_str_in_output": True, "stop": "x"}, "include_stop", True),
        ({"ignore_eos": True}, "ignore_eos", True),
    ],
)
async def test_stopping(caller, engine, fields, name, wanted):
    await caller.ask(**fields)
    assert getattr(engine.requests[0].stopping, name) == wanted


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (MindIEConfig(max_iter_times=5), 5),
        (MindIEConfig(max_seq_len=40), 40 - PROMPT),
        (MindIEConfig(max_seq_len=1_000_000), 64 - PROMPT),
    ],
)
@pytest.mark.parametrize("asked", [None, 60])
async def test_the_configuration_bounds_the_answer(calling, engine, config, wanted, asked):
    await calling(engine, config).ask(max_tokens=asked)
    assert engine.requests[0].stopping.max_tokens == wanted


@pytest.mark.parametrize(
    ("fields", "n", "logprobs"),
    [
        ({"n": 2}, 2, 0),
        ({"n": 2, "best_of": 3}, 3, 0),
        ({"best_of": 3}, 3, 0),
        ({"best_of": None, "n": None}, 1, None),
        ({"logprobs": True}, 1, 0),
        ({"logprobs": False}, 1, None),
        ({"logprobs": True, "top_logprobs": 3}, 1, 3),
        ({"top_logprobs": 0}, 1, 0),
        ({"n": 2, "top_logprobs": 5}, 2, 5),
    ],
)
async def test_sequences_and_scores(calling, spelling, fields, n, logprobs):
    engine = spelling(*["ok"] * n)
    await calling(engine).ask(**fields)
    assert (engine.requests[0].n, engine.requests[0].logprobs) == (n, logprobs)


async def test_a_stream_of_several_sequences_needs_no_scores(calling, spelling):
    engine = spelling("a", "b")
    await calling(engine).chunks(n=2)
    assert engine.requests[0].logprobs is None


async def test_special_tokens_may_be_shown(caller, engine):
    await caller.ask(skip_special_tokens=False)
    assert not engine.requests[0].skip_special_tokens


async def test_hints_reach_the_engine_and_the_id_is_ours(caller, engine):
    await caller.answer(hints={"x-isogloss-script": "abc"})
    assert engine.requests[0].hints == {"x-isogloss-script": "abc"}
    assert engine.requests[0].request_id == "endpoint_common_1"


async def test_unknown_fields_have_no_effect(caller, engine):
    await caller.ask(chat_template="{{ 1 }}", user="x", some={"thing": [1]})
    await caller.ask()
    first, second = engine.requests
    assert first.prompt == second.prompt
