"""Thoughts: told apart from the content, counted, and never cut by a stop text that is asked to vanish."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from isogloss.engine.scripted import ScriptedEngine

THOUGHT = ["<think>", "\n", "two and", " two", "\n", "</think>", "\n\n", "Four", "."]
WEATHER = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def hints(**script: Any) -> dict[str, str]:
    return {"x-isogloss-script": base64.b64encode(json.dumps(script).encode()).decode()}


@pytest.fixture
async def start(calling):
    engines = []

    async def started(**options: Any) -> Any:
        engines.append(ScriptedEngine(**{"reasoning_format": "qwen3", **options}))
        await engines[-1].start()
        return calling(engines[-1])

    yield started
    for engine in engines:
        await engine.stop()


def joined(chunks: list[Any], index: int = 0) -> tuple[str, str]:
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"][0]["index"] == index]
    return "".join(d.get("reasoning_content", "") for d in deltas), "".join(d["content"] for d in deltas)


async def test_thought_and_content(start):
    caller = await start()
    fields = {"hints": hints(tokens=THOUGHT), "logprobs": True}
    body = await caller.ask(**fields)
    (choice,) = body["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "Four.",
        "reasoning_content": "two and two",
        "tool_calls": [],
    }
    assert choice["finish_reason"] == "stop"
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": THOUGHT.index("</think>") + 1}
    assert "".join(entry["token"] for entry in choice["logprobs"]["content"]) == "".join(THOUGHT)
    chunks = await caller.chunks(**fields)
    assert joined(chunks) == ("two and two", "Four.")
    assert len(chunks) == body["usage"]["completion_tokens"]
    assert chunks[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"] == THOUGHT.index("</think>") + 1


async def test_without_a_format_it_is_all_text(start):
    body = await (await start(reasoning_format=None)).ask(hints=hints(tokens=THOUGHT))
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "".join(THOUGHT), "tool_calls": []}
    assert "completion_tokens_details" not in body["usage"]


async def test_an_answer_without_a_thought(start):
    body = await (await start()).ask(hints=hints(tokens=["Four"]))
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Four", "tool_calls": []}
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


async def test_a_thought_that_the_limit_cuts(start):
    caller = await start()
    body = await caller.ask(hints=hints(tokens=THOUGHT), max_tokens=4)
    (choice,) = body["choices"]
    assert (choice["message"]["reasoning_content"], choice["message"]["content"]) == ("two and two", "")
    assert choice["finish_reason"] == "length"
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 4}


@pytest.mark.parametrize(
    ("enabled", "thought", "content"), [(True, "a", "b"), (None, "a", "b"), (False, "", "a</think>b")]
)
async def test_the_prompt_says_whether_a_thought_has_begun(start, enabled, thought, content):
    """With an implicit start only the prompt tells."""
    caller = await start(reasoning_format="deepseek_r1")
    fields = {} if enabled is None else {"chat_template_kwargs": {"enable_thinking": enabled}}
    message = (await caller.ask(hints=hints(tokens=["a", "</think>", "b"]), **fields))["choices"][0]["message"]
    assert (message.get("reasoning_content", ""), message["content"]) == (thought, content)


@pytest.mark.parametrize("include", [False, True])
async def test_a_stop_text_in_a_thought_stays(start, include):
    caller = await start()
    fields = {"stop": " two", "include_stop_str_in_output": include, "hints": hints(tokens=THOUGHT), "logprobs": True}
    (choice,) = (await caller.ask(**fields))["choices"]
    assert (choice["message"]["reasoning_content"], choice["message"]["content"]) == ("two and two", "")
    assert choice["finish_reason"] == "stop"
    assert "".join(entry["token"] for entry in choice["logprobs"]["content"]) == "<think>\ntwo and two"
    assert joined(await caller.chunks(**fields)) == ("two and two", "")


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize(
    ("stop", "thought"),
    [("two", "hm\n\ntwo"), ("\n\n", "hm\n\n"), ("</think>", "hm\n\ntwo"), ("o</think>\n", "hm\n\ntwo")],
)
async def test_a_thought_is_the_same_whether_its_stop_text_is_asked_for(start, include, stop, thought):
    tokens = ["<think>", "hm", "\n\n", "two", "</think>", "\n", "Four"]
    fields = {"stop": stop, "include_stop_str_in_output": include, "hints": hints(tokens=tokens)}
    caller = await start()
    message = (await caller.ask(**fields))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (thought, "")
    assert joined(await caller.chunks(**fields)) == (thought, "")


async def test_a_stop_text_that_goes_beyond_a_thought_is_no_content(start):
    fields = {"stop": "</think>\n\nFo", "hints": hints(tokens=THOUGHT)}
    message = (await (await start()).ask(**fields))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("two and two", "")


@pytest.mark.parametrize(("include", "content"), [(False, "Fo"), (True, "Four")])
async def test_a_stop_text_in_the_content_goes_as_ever(start, include, content):
    fields = {"stop": "ur", "include_stop_str_in_output": include, "hints": hints(tokens=THOUGHT)}
    message = (await (await start()).ask(**fields))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("two and two", content)


async def test_each_choice_has_a_thought_of_its_own(start):
    caller = await start()
    fields = {"n": 3, "hints": hints(tokens=THOUGHT)}
    body = await caller.ask(**fields)
    assert [choice["message"]["reasoning_content"] for choice in body["choices"]] == ["two and two"] * 3
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] == 3 * (THOUGHT.index("</think>") + 1)
    chunks = await caller.chunks(**fields)
    assert {joined(chunks, index) for index in range(3)} == {("two and two", "Four.")}


async def test_beams_think_too(start):
    caller = await start()
    body = await caller.ask(n=2, use_beam_search=True, max_tokens=12, hints=hints(tokens=THOUGHT))
    assert {choice["message"]["reasoning_content"] for choice in body["choices"]} == {"two and two"}


async def test_a_call_after_a_thought(start):
    caller = await start()
    call = {"name": "f", "arguments": '{"a": "<think>"}'}
    fields = {"tools": [WEATHER], "hints": hints(tokens=THOUGHT[:7], tool_calls=[call])}
    (choice,) = (await caller.ask(**fields))["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["reasoning_content"] == "two and two"
    assert choice["message"]["content"] == ""
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"a": "<think>"}


@pytest.mark.parametrize(
    "fields", [{"response_format": {"type": "json_object"}}, {"tools": [WEATHER], "tool_choice": "required"}]
)
async def test_a_guide_begins_behind_the_thought(start, fields):
    caller = await start()
    fields = {**fields, "max_tokens": 200, "seed": 1, "hints": hints(tokens=THOUGHT[:6])}
    (choice,) = (await caller.ask(**fields))["choices"]
    message = choice["message"]
    assert message["reasoning_content"] == "two and two"
    text = message["content"] or message["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(text), dict)
