"""Streams: chunks, their order, the closing chunk of each sequence."""

from __future__ import annotations

import pytest
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.engine.api import Delta, EngineFailure, Finish, Started, TokenLogprob, TokenScore
from isogloss_spec.faults import Fault


async def test_one_chunk_per_token_and_the_role_in_each(calling, spelling):
    chunks = await calling(spelling("abc")).chunks()
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas == [{"role": "assistant", "content": char} for char in "abc"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "length"]
    assert all(chunk["choices"][0]["logprobs"] is None for chunk in chunks)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert {chunk["id"] for chunk in chunks} == {"endpoint_common_1"}
    assert len({chunk["created"] for chunk in chunks}) == 1


async def test_sequences_take_turns_in_order_and_each_closes_with_its_own_usage(calling, spelling):
    chunks = await calling(spelling("ab", "c", "def", cached=16)).chunks(n=3, best_of=3)
    assert [chunk["choices"][0]["index"] for chunk in chunks] == [0, 1, 2, 0, 2, 2]
    usages = {chunk["choices"][0]["index"]: chunk["usage"] for chunk in chunks if "usage" in chunk}
    assert [usages[index]["completion_tokens"] for index in range(3)] == [2, 1, 3]
    assert usages[0] == {
        "prompt_tokens": 26,
        "prompt_tokens_details": {"cached_tokens": 16},
        "completion_tokens": 2,
        "total_tokens": 28,
        "batch_size": [1, 2],
        "queue_wait_time": [5000, 1000],
    }
    for chunk in chunks:
        assert ("usage" in chunk) == (chunk["choices"][0]["finish_reason"] is not None)
    assert list(chunks[-1]) == ["id", "object", "created", "model", "usage", "choices"]


async def test_a_step_that_shows_nothing_is_a_chunk_too(calling, playing):
    script = [Started(), Delta(0, "", (1,)), Delta(0, "é", (2,)), Delta(0, "", (3,), (), Finish("stop", "x"))]
    chunks = await calling(playing(lambda _: script)).chunks()
    assert [chunk["choices"][0]["delta"]["content"] for chunk in chunks] == ["", "é", ""]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


async def test_full_text(calling, spelling):
    chunks = await calling(spelling("ab", "c"), MindIEConfig(full_text=True)).chunks(n=2)
    shown = [(chunk["choices"][0]["delta"]["content"], chunk.get("full_text")) for chunk in chunks]
    assert shown == [("a", None), ("c", "c"), ("ab", "ab")]
    assert all(("full_text" in chunk) == ("usage" in chunk) for chunk in chunks)


async def test_logprobs_come_with_their_text(calling, playing):
    def scored(text: str, alone: str = "\ufffd") -> tuple[TokenScore, ...]:
        return (TokenScore(TokenLogprob(1, alone, -1.0, 1), (), text),)

    script = [
        Started(),
        Delta(0, "", (1,), scored("")),
        Delta(0, "é", (2,), scored("é")),
        Delta(0, "", (3,), scored("ST", "ST")),
        Delta(0, "", (4,), scored("OP", "OP"), Finish("stop", "STOP")),
    ]
    chunks = await calling(playing(lambda _: script)).chunks(logprobs=True, stop="STOP")
    shown = [[entry["token"] for entry in chunk["choices"][0]["logprobs"]["content"]] for chunk in chunks]
    assert shown == [[""], ["é"], [], ["", ""]]


async def test_failure_after_text_comes_after_the_text(calling, playing):
    engine = playing(lambda _: [Started(), Delta(0, "a", (1,)), EngineFailure("broken")])
    stream = await calling(engine).answer(stream=True)
    assert (await anext(stream.events))["choices"][0]["delta"]["content"] == "a"
    with pytest.raises(Fault) as caught:
        await anext(stream.events)
    assert caught.value.name == "engine_failure"


async def test_closing_a_stream_closes_the_engines_generator(calling, spelling):
    engine = spelling("abc" * 100)
    stream = await calling(engine).answer(stream=True)
    await anext(stream.events)
    await stream.events.aclose()
    assert engine.closed == [engine.requests[0].request_id]
