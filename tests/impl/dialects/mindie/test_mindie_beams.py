"""Beam search: what the engine is asked, and in which order its sequences are shown."""

from __future__ import annotations

import pytest
from isogloss.engine.scripted import ScriptedEngine
from isogloss_spec.faults import Fault


@pytest.fixture
def searching(spelling):
    """An engine with beams, whose second sequence has the higher sum of log probabilities."""

    def make(*texts):
        engine = spelling(*texts, logprobs=[-1.0, -0.5][: len(texts)])
        engine.features = frozenset({"beam"})
        return engine

    return make


@pytest.mark.parametrize(
    ("fields", "n", "beams"),
    [
        ({}, 1, 1),
        ({"n": 2}, 2, 2),
        ({"n": 2, "best_of": 1}, 2, 2),
        ({"best_of": 4}, 1, 4),
        ({"n": 2, "best_of": 4}, 2, 4),
        ({"n": None, "best_of": None}, 1, 1),
    ],
)
async def test_sequences_and_beams(calling, searching, fields, n, beams):
    engine = searching(*["ok"] * n)
    await calling(engine).ask(use_beam_search=True, max_tokens=4, **fields)
    assert (engine.requests[0].n, engine.requests[0].beams) == (n, beams)


@pytest.mark.parametrize("value", [False, None])
async def test_without_beams_the_engine_samples(calling, searching, value):
    engine = searching("ok")
    await calling(engine).ask(use_beam_search=value, n=1)
    assert engine.requests[0].beams is None


async def test_the_engines_order_stays(calling, searching):
    body = await calling(searching("a", "b")).ask(use_beam_search=True, n=2, max_tokens=4, logprobs=True)
    assert [choice["message"]["content"] for choice in body["choices"]] == ["a", "b"]


@pytest.mark.parametrize("fields", [{"stop": "x"}, {"stop_token_ids": [3]}, {"max_tokens": 129}])
async def test_refusals(calling, searching, fields):
    with pytest.raises(Fault, match="rule"):
        await calling(searching("ok")).ask(**({"use_beam_search": True, "max_tokens": 4} | fields))


async def test_a_stream_has_one_chunk_per_sequence_with_its_whole_text(calling):
    engine = ScriptedEngine()
    await engine.start()
    asked = {"use_beam_search": True, "n": 3, "best_of": 5, "max_tokens": 9, "logprobs": True}
    whole = (await calling(engine).ask(**asked))["choices"]
    chunks = await calling(engine).chunks(**asked)
    assert [chunk["choices"][0]["index"] for chunk in chunks] == [0, 1, 2]
    for chunk, choice in zip(chunks, whole, strict=True):
        (streamed,) = chunk["choices"]
        assert streamed["delta"]["content"] == choice["message"]["content"] != ""
        assert (streamed["logprobs"], streamed["finish_reason"]) == (choice["logprobs"], choice["finish_reason"])
        assert chunk["usage"]["completion_tokens"] == len(choice["logprobs"]["content"])


async def test_a_response_format_is_refused(calling, searching):
    engine = searching("ok")
    engine.features |= {"guided"}
    with pytest.raises(Fault, match="rule"):
        await calling(engine).ask(use_beam_search=True, max_tokens=4, response_format={"type": "json_object"})
