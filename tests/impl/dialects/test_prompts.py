"""Shapes of prompts, and what the rules learn about them."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from isogloss.dialects.prompts import measure, tokenize
from isogloss_spec.faults import Fault


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("ab", [[97, 98]]),
        (["ab", "c"], [[97, 98], [99]]),
        ([5, 6], [[5, 6]]),
        ([[5, 6], [7]], [[5, 6], [7]]),
    ],
)
async def test_four_shapes(caller, engine, prompt, wanted):
    body = await caller.ask(prompt=prompt)
    assert [request.prompt for request in engine.requests] == wanted
    assert body["usage"]["prompt_tokens"] == sum(len(tokens) for tokens in wanted)
    assert [choice["index"] for choice in body["choices"]] == list(range(len(wanted)))


async def test_context_of_texts(caller):
    await caller.ask(prompt=["ab", "c"])
    assert caller.context == {
        "prompts": 2,
        "prompt_tokens_min": 1,
        "prompt_tokens_max": 2,
        "prompt_tokens_sum": 3,
        "max_token_id": -1,
        "context_length": 64,
        "vocab_size": 2048,
    }


async def test_context_of_token_ids(caller):
    await caller.ask(prompt=[[5, 60], [7]])
    assert caller.context["max_token_id"] == 60


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"prompt": [2048]}, "rule"),
        ({"prompt": [[1], [2, 2048]]}, "rule"),
        ({"prompt": [1] * 60, "max_tokens": 5}, "context_overflow"),
        ({"logit_bias": {"2048": 1}}, "rule"),
        ({"prompt_logprobs": 2049}, "rule"),
    ],
)
async def test_rules_of_stage_prompt_refuse(caller, engine, fields, fault):
    with pytest.raises(Fault) as caught:
        await caller.ask(**fields)
    assert caught.value.name == fault
    assert not engine.requests


class Threads:
    """A tokenizer that notes where it works and what it is told."""

    infill = None

    def __init__(self):
        self.used = []
        self.special = []

    def encode(self, text, *, add_special_tokens=True):
        self.used.append(threading.current_thread())
        self.special.append(add_special_tokens)
        return [1] * len(text)


@pytest.mark.parametrize(("texts", "elsewhere"), [("a" * 4095, False), ("a" * 4096, True), (["a" * 2048] * 2, True)])
async def test_long_texts_leave_the_event_loop(texts, elsewhere):
    tokenizer = Threads()
    await tokenize(texts, SimpleNamespace(tokenizer=tokenizer, card=SimpleNamespace(context_length=4096)))
    assert all((thread is not threading.current_thread()) == elsewhere for thread in tokenizer.used)


@pytest.mark.parametrize(("fields", "wanted"), [({}, True), ({"add_special_tokens": False}, False)])
async def test_add_special_tokens(caller, engine, monkeypatch, fields, wanted):
    engine.tokenizer = Threads()
    await caller.ask(**fields)
    assert engine.tokenizer.special == [wanted]


@pytest.mark.parametrize("text", ["a" * 1_000_000, "word " * 200_000])
async def test_a_text_of_far_too_many_tokens_is_not_counted_to_its_end(text):
    tokenizer = Threads()
    engine = SimpleNamespace(tokenizer=tokenizer, card=SimpleNamespace(context_length=20_000, vocab_size=10))
    (prompt,) = await tokenize(text, engine)
    assert 20_000 < prompt.length < 50_000
    assert len(tokenizer.used) == 2
    assert measure([prompt], engine.card)["prompt_tokens_max"] == prompt.length
