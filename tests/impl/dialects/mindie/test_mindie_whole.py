"""Whole answers, member by member."""

from __future__ import annotations

import time

import pytest
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.engine.api import Delta, EngineFailure, EngineOverloaded, EngineRefused, Finish, Started
from isogloss_spec.faults import Fault


async def test_members(calling, spelling):
    body = await calling(spelling("abc", cached=16)).ask()
    assert list(body) == [
        *("id", "object", "created", "model", "choices", "usage", "prefill_time", "decode_time_arr"),
    ]
    assert (body["id"], body["object"], body["model"]) == ("endpoint_common_1", "chat.completion", "fake")
    assert abs(body["created"] - time.time()) < 5
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "abc", "tool_calls": []},
            "logprobs": None,
            "finish_reason": "length",
        }
    ]
    assert body["usage"] == {
        "prompt_tokens": 26,
        "prompt_tokens_details": {"cached_tokens": 16},
        "completion_tokens": 3,
        "total_tokens": 29,
        "batch_size": [1, 2, 3],
        "queue_wait_time": [5000, 1000, 2000],
    }
    assert body["prefill_time"] == 255
    assert body["decode_time_arr"] == [10, 20]


async def test_ids_count(caller):
    assert [(await caller.ask())["id"] for _ in range(3)] == [f"endpoint_common_{i}" for i in (1, 2, 3)]


async def test_several_sequences_come_best_first(calling, spelling):
    engine = spelling("aaa", "b", "cc", logprobs=[-1.0, -2.5, -0.5])
    body = await calling(engine).ask(n=3)
    assert [(choice["index"], choice["message"]["content"]) for choice in body["choices"]] == [
        (0, "cc"),
        (1, "b"),
        (2, "aaa"),
    ]
    assert [choice["finish_reason"] for choice in body["choices"]] == ["stop", "stop", "length"]
    assert all(choice["logprobs"] is None for choice in body["choices"])


async def test_equally_likely_sequences_keep_their_order(calling, spelling):
    body = await calling(spelling("a", "b", "c")).ask(best_of=3)
    assert [choice["message"]["content"] for choice in body["choices"]] == ["a", "b", "c"]


async def test_figures_are_those_of_the_longest_sequence(calling, spelling):
    body = await calling(spelling("a", "bbbb", "cc")).ask(n=3)
    usage = body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (26, 7, 33)
    assert usage["batch_size"] == [1, 2, 3, 4]
    assert usage["queue_wait_time"] == [5000, 1000, 2000, 3000]
    assert body["decode_time_arr"] == [10, 20, 30]


@pytest.mark.parametrize(
    ("fields", "alternatives"),
    [({"logprobs": True}, 0), ({"top_logprobs": 0}, 0), ({"top_logprobs": 1}, 1), ({"top_logprobs": 2}, 2)],
)
async def test_logprobs(calling, spelling, fields, alternatives):
    body = await calling(spelling("é!", logprobs=[-0.5])).ask(**fields)
    content = body["choices"][0]["logprobs"]["content"]
    top = [{"token": "@", "logprob": -0.25, "bytes": [64]}, {"token": "é", "logprob": -0.5, "bytes": [195, 169]}]
    assert content[0] == {"token": "é", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": top[:alternatives]}
    assert "".join(entry["token"] for entry in content) == "é!"


async def test_logprobs_of_sequences_follow_their_order(calling, spelling):
    body = await calling(spelling("a", "b", logprobs=[-3.0, -1.0])).ask(n=2, logprobs=True)
    tokens = [choice["logprobs"]["content"][0]["token"] for choice in body["choices"]]
    assert tokens == [choice["message"]["content"] for choice in body["choices"]] == ["b", "a"]


async def test_the_configured_name(calling, engine):
    caller = calling(engine, MindIEConfig(model_name="llama3-70b", max_seq_len=40))
    assert (await caller.ask())["model"] == "llama3-70b"
    (entry,) = (await caller.dialect.routes.list_models(None)).body["data"]
    assert (entry["id"], entry["max_model_len"]) == ("llama3-70b", 40)
    with pytest.raises(Fault) as caught:
        await caller.ask(model="fake")
    assert caught.value.name == "unknown_model"


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (EngineRefused("no"), "engine_refused"),
        (EngineOverloaded("full"), "overloaded"),
        (EngineFailure("broken"), "engine_failure"),
    ],
)
async def test_errors_of_the_engine(calling, playing, error, fault):
    with pytest.raises(Fault) as caught:
        await calling(playing(lambda _: [error])).ask()
    assert caught.value.name == fault


async def test_a_sequence_that_never_ends_is_a_failure(calling, playing):
    script = [Started(), Delta(0, "a", (1,), (), Finish("stop")), Delta(1, "b", (2,))]
    with pytest.raises(Fault) as caught:
        await calling(playing(lambda _: script)).ask(n=2)
    assert caught.value.name == "engine_failure"
