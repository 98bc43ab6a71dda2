"""Beam search over the tiny model."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from isogloss.engine.api import Delta, GenerationRequest, Stopping
from isogloss.engine.scripted import ScriptedEngine


@pytest.fixture
async def search():
    engine = ScriptedEngine()
    await engine.start()

    async def search(beams, n, count=6, **stopping):
        request = GenerationRequest("r", [1, 2, 3], Stopping(count, **stopping), n=n, beams=beams, logprobs=1)
        return [event async for event in engine.generate(request) if isinstance(event, Delta)]

    yield search
    await engine.stop()


def mean(delta):
    return sum(score.chosen.logprob for score in delta.scores) / len(delta.scores)


async def test_each_sequence_comes_whole_best_first(search):
    deltas = await search(4, 3)
    assert [delta.choice for delta in deltas] == [0, 1, 2]
    assert all(delta.finish and len(delta.scores) == len(delta.token_ids) for delta in deltas)
    means = [mean(delta) for delta in deltas]
    assert means == sorted(means, reverse=True)
    assert len({delta.token_ids for delta in deltas}) == 3


async def test_one_beam_takes_the_likeliest_token_each_time(search):
    (delta,) = await search(1, 1)
    assert all(score.chosen.rank == 1 for score in delta.scores)


async def test_more_beams_find_no_worse(search):
    best = [mean((await search(beams, 1))[0]) for beams in (1, 8)]
    assert best[1] >= best[0]


async def test_ends(search):
    (ended,) = {delta.finish.reason for delta in await search(3, 3, ignore_eos=True)}
    assert ended == "length"
    assert all(len(delta.token_ids) == 6 for delta in await search(3, 3, min_tokens=6))


async def test_a_script_is_told_in_one_piece():
    engine = ScriptedEngine()
    await engine.start()
    script = base64.b64encode(json.dumps({"tokens": ["a", "b", "c"]}).encode()).decode()
    hints = {"x-isogloss-script": script}
    request = GenerationRequest("r", [1], Stopping(9), n=2, beams=2, hints=hints)
    deltas = [event async for event in engine.generate(request) if isinstance(event, Delta)]
    assert [(delta.choice, delta.text) for delta in deltas] == [(0, "abc"), (1, "abc")]


async def test_the_widest_search_ends(search):
    assert len(await asyncio.wait_for(search(128, 128, 128, ignore_eos=True), 60)) == 128
