"""Streams: chunks, their order, usage, endings."""

from __future__ import annotations

import pytest
from isogloss.engine.api import Delta, EngineFailure, Finish, Started
from isogloss_spec.faults import Fault


async def test_one_chunk_per_delta_and_finish_in_the_last(calling, playing, spell):
    chunks = await calling(playing(spell("abc"))).chunks()
    choices = [chunk["choices"] for chunk in chunks]
    assert [[choice["text"] for choice in each] for each in choices] == [["a"], ["b"], ["c"]]
    assert [each[0]["finish_reason"] for each in choices] == [None, None, "length"]
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert all("usage" not in chunk for chunk in chunks)


async def test_no_chunk_for_what_shows_nothing(calling, playing):
    def script(_):
        yield Started()
        yield Delta(0, "", (1,))
        yield Delta(0, "é", (2,))
        yield Delta(0, "", (3,), (), Finish("stop", "x"))

    chunks = await calling(playing(script)).chunks()
    assert [(chunk["choices"][0]["text"], chunk["choices"][0]["stop_reason"]) for chunk in chunks] == [
        ("é", None),
        ("", "x"),
    ]


async def test_all_choices_of_all_prompts_end_once(calling, playing, spell):
    chunks = await calling(playing(spell("abcd"))).chunks(prompt=["x", "y", "z"], n=2)
    texts = dict.fromkeys(range(6), "")
    ended = []
    for chunk in chunks:
        (choice,) = chunk["choices"]
        assert choice["index"] not in ended
        texts[choice["index"]] += choice["text"]
        if choice["finish_reason"]:
            ended.append(choice["index"])
    assert sorted(ended) == [0, 1, 2, 3, 4, 5]
    assert set(texts.values()) == {"abcd"}


async def test_prompts_take_turns(calling, playing, spell):
    chunks = await calling(playing(spell("abcd" * 50))).chunks(prompt=["x", "y"])
    first = [chunk["choices"][0]["index"] for chunk in chunks[:100]]
    assert 40 <= sum(first) <= 60


async def test_usage_chunk(caller):
    chunks = await caller.chunks(prompt=["abc", "d"], n=2, stream_options={"include_usage": True})
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 4,
        "completion_tokens": 8,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"continuous_usage_stats": True}])
async def test_no_usage_without_asking_for_it(caller, options):
    chunks = await caller.chunks(stream_options=options)
    assert all(chunk["choices"] and chunk.get("usage") is None for chunk in chunks)


async def test_continuous_usage(calling, playing, spell):
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = await calling(playing(spell("abc"))).chunks(stream_options=options)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [1, 2, 3, 3]
    assert all(chunk["usage"]["total_tokens"] == chunk["usage"]["completion_tokens"] + 2 for chunk in chunks)


async def test_failure_after_text_comes_after_the_text(calling, playing):
    engine = playing(lambda _: [Started(), Delta(0, "a", (1,)), EngineFailure("broken")])
    stream = await calling(engine).answer(stream=True)
    assert (await anext(stream.events))["choices"][0]["text"] == "a"
    with pytest.raises(Fault) as caught:
        await anext(stream.events)
    assert caught.value.name == "engine_failure"
    assert len(engine.closed) == 1


@pytest.mark.parametrize("prompt", ["a", ["a", "b", "c"]])
async def test_closing_a_stream_closes_every_engine_generator_once(calling, playing, spell, prompt):
    engine = playing(spell("abc" * 100))
    stream = await calling(engine).answer(stream=True, prompt=prompt)
    await anext(stream.events)
    await stream.events.aclose()
    assert sorted(engine.closed) == sorted(request.request_id for request in engine.requests)
    assert len(engine.closed) == (1 if prompt == "a" else 3)


async def test_a_stream_that_is_never_read_asks_nothing(calling, playing, spell):
    engine = playing(spell())
    stream = await calling(engine).answer(stream=True)
    await stream.events.aclose()
    assert engine.requests == []
