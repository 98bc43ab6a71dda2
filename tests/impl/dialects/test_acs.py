"""ACS: what is its own, beside what all completions share."""

from __future__ import annotations

import asyncio

import pytest
from isogloss.engine.scripted import Limits, ScriptedEngine
from isogloss.engine.scripted.vocabulary import VOCAB_SIZE
from isogloss_spec.faults import Fault


@pytest.fixture
def dialect():
    return "acs"


async def test_members_of_the_answer(caller):
    body = await caller.ask()
    assert (body["object"], body["model"], body["id"][:5]) == ("text_completion", "fake", "cmpl-")
    assert body["choices"] == [
        {
            "index": 0,
            "text": "ok",
            "logprobs": None,
            "finish_reason": "length",
            "stop_reason": None,
            "prompt_logprobs": None,
        }
    ]
    assert body["usage"] == {"prompt_tokens": 2, "total_tokens": 4, "completion_tokens": 2}


@pytest.mark.parametrize("model", [..., None, "fake"])
async def test_without_a_model_the_served_one_answers(caller, model):
    assert (await caller.ask(model=model))["model"] == "fake"


@pytest.mark.parametrize(("prompt", "wanted"), [("Hi", 62), ([5] * 60, 4)])
async def test_max_tokens_is_what_the_context_leaves(caller, engine, prompt, wanted):
    await caller.ask(prompt=prompt)
    assert engine.requests[0].stopping.max_tokens == wanted


@pytest.mark.parametrize(("stream", "wanted"), [(False, 15_600), (True, 32_000)])
async def test_max_tokens_is_bounded(caller, engine, stream, wanted):
    engine.card = engine.card.__class__("fake", 100_000, 2048, 2, 8, 7)
    await (caller.chunks() if stream else caller.ask())
    assert engine.requests[0].stopping.max_tokens == wanted


async def test_defaults_switch_everything_off(caller, engine):
    await caller.ask()
    (request,) = engine.requests
    assert (request.n, request.logprobs, request.prompt_logprobs, request.priority) == (1, None, None, 0)
    assert request.skip_special_tokens
    sampling, stopping = request.sampling, request.stopping
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (1, 1, 0, 0)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (0, 0, 1)
    assert (stopping.min_tokens, stopping.stop, stopping.stop_token_ids) == (0, (), frozenset())
    assert not stopping.include_stop
    assert not stopping.ignore_eos


async def test_stop_token_ids(caller, engine):
    await caller.ask(stop_token_ids=[7, 9, 7])
    assert engine.requests[0].stopping.stop_token_ids == frozenset({7, 9})


async def test_special_tokens(caller, engine):
    await caller.ask(skip_special_tokens=False)
    assert engine.requests[0].skip_special_tokens is False


@pytest.mark.parametrize(("value", "wanted"), [(3, 3), (-3, -3), ("+07", 7), ("-5", -5), (None, 0)])
async def test_priority_as_number_or_text(caller, engine, value, wanted):
    await caller.ask(priority=value)
    assert engine.requests[0].priority == wanted


async def test_a_lower_priority_starts_earlier(calling):
    engine = ScriptedEngine(limits=Limits(max_num_seqs=1))
    await engine.start()
    caller = calling(engine, "acs")
    done = []

    async def ask(priority):
        await caller.ask(priority=priority, max_tokens=2)
        done.append(priority)

    running = await caller.answer(stream=True, max_tokens=50, ignore_eos=True)
    await anext(running.events)
    waiting = [asyncio.create_task(ask(priority)) for priority in (5, "7", 0, "-1", 6)]
    while engine.status().waiting < len(waiting):  # noqa: ASYNC110 - the engine runs on this loop
        await asyncio.sleep(0)
    await running.events.aclose()
    await asyncio.gather(*waiting)
    assert done == ["-1", 0, 5, 6, "7"]


async def test_token_ids(caller):
    body = await caller.ask(prompt=[[72, 105], [5]], n=2, max_tokens=2, return_token_ids=True)
    assert [choice["token_ids"] for choice in body["choices"]] == [[111, 107]] * 4
    assert [choice["prompt_token_ids"] for choice in body["choices"]] == [[72, 105], [72, 105], [5], [5]]


@pytest.mark.parametrize("echo", [False, True])
async def test_token_ids_of_a_stream(caller, echo):
    chunks = await caller.chunks(prompt=[[72, 105], [5]], max_tokens=2, return_token_ids=True, echo=echo)
    for index, prompt in enumerate([[72, 105], [5]]):
        own = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
        assert [token for choice in own for token in choice["token_ids"]] == [111, 107]
        assert [choice.get("prompt_token_ids") for choice in own] == [prompt, *[None] * (len(own) - 1)]


async def test_no_token_ids_without_asking_for_them(caller):
    (choice,) = (await caller.ask())["choices"]
    assert not choice.keys() & {"token_ids", "prompt_token_ids"}
    assert not any(chunk["choices"][0].keys() & {"token_ids", "prompt_token_ids"} for chunk in await caller.chunks())


async def test_echo_with_and_without_a_stream(caller):
    fields = {"echo": True, "logprobs": 0, "return_tokens_as_token_ids": True}
    (choice,) = (await caller.ask(**fields))["choices"]
    parts = [chunk["choices"][0] for chunk in await caller.chunks(**fields)]
    assert choice["text"] == "".join(part["text"] for part in parts) == "Hiok"
    names = [name for part in parts for name in part["logprobs"]["tokens"]]
    assert choice["logprobs"]["tokens"] == names == ["token_id:72", "token_id:105", "token_id:111", "token_id:107"]


async def test_prompt_logprobs(caller, engine):
    (choice,) = (await caller.ask(prompt_logprobs=1))["choices"]
    assert choice["prompt_logprobs"][0] is None
    assert sorted(choice["prompt_logprobs"][1]) == ["105", "64"]
    assert engine.requests[0].prompt_logprobs == 1


async def test_prompt_logprobs_of_the_whole_vocabulary(calling):
    engine = ScriptedEngine()
    await engine.start()
    (choice,) = (await calling(engine, "acs").ask(prompt="abc", prompt_logprobs=-1, max_tokens=1))["choices"]
    first, *others = choice["prompt_logprobs"]
    assert first is None
    assert [len(figures) for figures in others] == [VOCAB_SIZE] * 2
    assert {figure["rank"] for figure in others[0].values()} == set(range(1, VOCAB_SIZE + 1))


async def test_usage_comes_last_in_a_stream(caller):
    chunks = await caller.chunks(stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None, None]
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 4)
    assert all("usage" not in chunk for chunk in await caller.chunks())


async def test_usage_so_far(caller):
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = await caller.chunks(stream_options=options)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [1, 2, 2]


async def test_chat_is_refused(caller):
    with pytest.raises(Fault) as caught:
        await caller.dialect.routes.create_chat_completion(None)
    assert caught.value.name == "acs.chat_refused"


@pytest.mark.parametrize(
    ("fields", "fault", "param"),
    [
        ({"n": 2}, "rule", "max_tokens"),
        ({"max_tokens": 15_601}, "acs.deadline_infeasible", "max_tokens"),
        ({"max_tokens": 16_001, "n": 2}, "rule", "max_tokens"),
        ({"max_tokens": 63}, "context_overflow", "max_tokens"),
        ({"stop_token_ids": [VOCAB_SIZE]}, "rule", "stop_token_ids"),
    ],
)
async def test_rules_of_stage_prompt(caller, engine, fields, fault, param):
    with pytest.raises(Fault) as caught:
        await caller.ask(**fields)
    assert (caught.value.name, caught.value.param) == (fault, param)
    assert not engine.requests
