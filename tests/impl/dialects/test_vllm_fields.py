"""What vLLM's fields ask of the engine, in the dialects that have them."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["nim", "acs"])
def dialect(request):
    return request.param


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("temperature", 0.5, 0.5),
        ("top_p", 0.25, 0.25),
        ("top_k", 7, 7),
        ("top_k", -1, 0),
        ("min_p", 0.1, 0.1),
        ("presence_penalty", 1.5, 1.5),
        ("frequency_penalty", -1.5, -1.5),
        ("repetition_penalty", 1.25, 1.25),
        ("seed", -5, -5),
    ],
)
async def test_sampling(caller, engine, field, value, wanted):
    await caller.ask(**{field: value})
    assert getattr(engine.requests[0].sampling, field) == wanted


@pytest.mark.parametrize(
    ("field", "value", "name", "wanted"),
    [
        ("max_tokens", 3, "max_tokens", 3),
        ("min_tokens", 2, "min_tokens", 2),
        ("stop", "end", "stop", ("end",)),
        ("stop", ["a", "b"], "stop", ("a", "b")),
        ("stop", [], "stop", ()),
        ("include_stop_str_in_output", True, "include_stop", True),
        ("ignore_eos", True, "ignore_eos", True),
    ],
)
async def test_stopping(caller, engine, field, value, name, wanted):
    await caller.ask(**{field: value})
    assert getattr(engine.requests[0].stopping, name) == wanted


async def test_names_as_token_ids(caller):
    (choice,) = (await caller.ask(logprobs=0, return_tokens_as_token_ids=True))["choices"]
    assert choice["logprobs"]["tokens"] == ["token_id:111", "token_id:107"]
