"""A guide beside the other rules that end or choose."""

from __future__ import annotations

import base64
import json

import pytest
from isogloss.engine.api import GenerationRequest, Guide, GuideError, Sampling, Stopping
from isogloss.engine.scripted import HINT

DIGITS = Guide("regex", "[0-9]{3}")
MANY = Guide("regex", "[0-9]*")


async def test_a_whole_text_ends_at_once_whatever_else_is_said(ask) -> None:
    for stopping in ({}, {"min_tokens": 50}, {"ignore_eos": True}, {"max_tokens": 3}):
        [deltas] = await ask(DIGITS, **stopping)
        assert len("".join(delta.text for delta in deltas)) == 3
        assert sum(len(delta.token_ids) for delta in deltas) == 3
        assert deltas[-1].finish.reason == "stop"


async def test_a_text_that_may_go_on_waits_for_min_tokens(ask) -> None:
    [deltas] = await ask(MANY, min_tokens=20)
    assert sum(len(delta.token_ids) for delta in deltas) > 20
    assert deltas[-1].finish.reason == "stop"


async def test_ignore_eos_goes_on_as_long_as_the_guide_can(ask) -> None:
    [deltas] = await ask(MANY, ignore_eos=True, max_tokens=30)
    assert len("".join(delta.text for delta in deltas)) == 30
    assert deltas[-1].finish.reason == "length"


async def test_a_cut_is_told(texts) -> None:
    assert [reason for _, reason in await texts(DIGITS, max_tokens=2)] == ["length"]


async def test_stop_strings_work(ask) -> None:
    [deltas] = await ask(Guide("regex", "[0-4]{9}5x"), stop=("5",))
    assert deltas[-1].finish.stop == "5"
    assert len("".join(delta.text for delta in deltas)) == 9


async def test_choices_are_independent_and_repeatable(texts) -> None:
    guide = Guide("regex", "[a-z]{12}")
    first = await texts(guide, n=4, sampling=Sampling(seed=5))
    assert len(set(first)) == 4
    assert await texts(guide, n=4, sampling=Sampling(seed=5)) == first


async def test_logprobs_come_with_it(ask) -> None:
    [deltas] = await ask(DIGITS, logprobs=2)
    scores = [score for delta in deltas for score in delta.scores]
    assert [len(score.top) for score in scores] == [2, 2, 2]
    assert "".join(score.chosen.text for score in scores) == "".join(delta.text for delta in deltas)


async def test_bias_and_penalties_choose_among_what_is_allowed(texts) -> None:
    bias = Sampling(temperature=0, logit_bias={ord("7"): 100.0, ord("x"): 100.0}, frequency_penalty=2.0)
    assert await texts(DIGITS, sampling=bias) == [("777", "stop")]


async def test_a_script_gives_way_to_the_guide(texts) -> None:
    script = base64.b64encode(json.dumps({"tokens": ["ab", "zz", "ab"]}).encode()).decode()
    [(text, reason)] = await texts(Guide("regex", "ab[01]ab"), hints={HINT: script})
    assert (text[:2], text[3:], reason) == ("ab", "ab", "stop")


async def test_a_guide_that_breaks_fails_alone(engine, compiler, monkeypatch) -> None:
    await compiler.ready(MANY)
    monkeypatch.setattr("isogloss.engine.guides.matcher._SLOWEST", -1.0)
    request = GenerationRequest("r", [1], Stopping(5), guide=MANY)
    with pytest.raises(GuideError):
        [event async for event in engine.generate(request)]
    assert engine.status().running == 0
