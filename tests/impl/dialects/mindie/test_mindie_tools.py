"""Functions: what the model is told, what it must call, and how its calls are shown."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.mindie_prompt import PromptReader
from isogloss.dialects.mindie_tools import read_tools
from isogloss.engine.chat import TOOL_FORMATS
from isogloss.engine.scripted import ScriptedEngine
from isogloss_api.mindie import requests
from isogloss_spec.faults import Fault

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OSLO = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
NOON = {"name": "get_time", "arguments": '{"city": "Bern", "zone": "UTC"}'}


def tool(name: str = "get_weather", parameters: object = CITY, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


TOOLS = [tool(), tool("get_time", {"type": "object"})]


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def hints(**script: Any) -> dict[str, str]:
    return {"x-isogloss-script": base64.b64encode(json.dumps(script).encode()).decode()}


@pytest.fixture
async def start(calling):
    """Start a scripted engine of a family and give a caller for it."""
    engines = []

    async def started(config: MindIEConfig | None = None, **options: Any) -> Any:
        engines.append(ScriptedEngine(**options))
        await engines[-1].start()
        return calling(engines[-1], config)

    yield started
    for engine in engines:
        await engine.stop()


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Calls with their arguments read."""
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]


def joined(chunks: list[Any]) -> dict[str, Any]:
    """The message that a client puts together from the deltas of one choice."""
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        message["content"] += delta["content"]
        for part in delta.get("tool_calls", ()):
            if "id" in part:
                assert part["index"] == len(message["tool_calls"])
                message["tool_calls"].append({"id": part["id"], "type": part["type"], "function": {**part["function"]}})
            else:
                assert set(part["function"]) == {"arguments"}
                message["tool_calls"][part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    return message


# -- what a request comes to --


def plan(**fields: Any) -> tuple[list[str], int, int | None]:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
    found = read_tools(requests.ChatRequest.model_validate(body))
    return [function.name for function in found.functions], found.at_least, found.at_most


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ([], 0, None)),
        ({"tools": []}, ([], 0, None)),
        ({"tools": None, "tool_choice": "required"}, ([], 0, None)),
        ({"tool_choice": named("get_time")}, ([], 0, None)),
        ({"tools": TOOLS}, (["get_weather", "get_time"], 0, None)),
        ({"tools": TOOLS, "tool_choice": None}, (["get_weather", "get_time"], 0, None)),
        ({"tools": TOOLS, "tool_choice": "auto"}, (["get_weather", "get_time"], 0, None)),
        ({"tools": TOOLS, "tool_choice": "none"}, ([], 0, None)),
        ({"tools": TOOLS, "tool_choice": "required"}, (["get_weather", "get_time"], 1, None)),
        ({"tools": TOOLS, "tool_choice": named("get_time")}, (["get_time"], 1, 1)),
        ({"tools": TOOLS, "tool_choice": named("get_tide")}, ([], 0, None)),
    ],
)
def test_choices(fields, expected):
    assert plan(**fields) == expected


async def test_the_model_is_told_of_the_functions_that_are_left(start):
    caller = await start()
    for choice, told in (("auto", True), ("none", False), (named("get_tide"), False), (named("get_time"), True)):
        await caller.ask(tools=TOOLS, tool_choice=choice, max_tokens=1)
        with_tools = caller.context["prompt_tokens_max"]
        await caller.ask(max_tokens=1)
        assert (with_tools > caller.context["prompt_tokens_max"]) is told, choice


# -- how calls are shown --


@pytest.mark.parametrize("family", sorted(TOOL_FORMATS))
async def test_calls_of_every_family(start, family):
    caller = await start(tool_format=family)
    fields = {"tools": TOOLS, "max_tokens": 500, "hints": hints(tool_calls=[OSLO, NOON])}
    (choice,) = (await caller.ask(**fields))["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == ""
    assert calls_of(choice["message"]) == [
        ("get_weather", {"city": "Oslo"}),
        ("get_time", json.loads(NOON["arguments"])),
    ]
    chunks = await caller.chunks(**fields)
    assert calls_of(joined(chunks)) == calls_of(choice["message"])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["tool_calls"]


async def test_ids_are_of_the_vendors_form_and_each_has_its_own(start):
    caller = await start()
    (choice,) = (await caller.ask(tools=TOOLS, hints=hints(tool_calls=[OSLO] * 3)))["choices"]
    ids = [call["id"] for call in choice["message"]["tool_calls"]]
    assert len(set(ids)) == 3
    assert all(re.fullmatch("call_[A-Za-z0-9]{8}", one) for one in ids)


@pytest.mark.parametrize("steps", [{}, {"chunk": 5}, {"one_delta": True}])
async def test_text_before_a_call_is_content(start, steps):
    caller = await start()
    fields = {"tools": TOOLS, "hints": hints(tokens=["Let me ", "look."], tool_calls=[OSLO], **steps)}
    message = (await caller.ask(**fields))["choices"][0]["message"]
    chunks = await caller.chunks(**fields)
    for one in (message, joined(chunks)):
        assert one["content"].strip() == "Let me look."
        assert calls_of(one) == [("get_weather", {"city": "Oslo"})]
    firsts = [part for chunk in chunks for part in chunk["choices"][0]["delta"].get("tool_calls", ()) if "id" in part]
    assert [set(first) for first in firsts] == [{"index", "id", "type", "function"}]
    if not steps:
        assert firsts[0]["function"] == {"name": "get_weather", "arguments": ""}


@pytest.mark.parametrize("cut", range(2, 38, 4))
async def test_a_call_that_is_cut_ends_with_length_and_shows_what_came(start, cut):
    caller = await start()
    script = hints(
        tool_calls=[{"name": "get_weather", "arguments": '{"city": "Llanfair pwll gwyn"}'}], truncate_tokens=cut
    )
    fields = {"tools": TOOLS, "hints": script, "max_tokens": cut}
    (choice,) = (await caller.ask(**fields))["choices"]
    message = joined(await caller.chunks(**fields))
    assert choice["finish_reason"] == "length"
    assert message["content"] == choice["message"]["content"]
    assert [call["function"] for call in message["tool_calls"]] == [
        call["function"] for call in choice["message"]["tool_calls"]
    ]


async def test_without_functions_a_call_is_text(start):
    caller = await start()
    for fields in ({}, {"tools": TOOLS, "tool_choice": "none"}, {"tools": TOOLS, "tool_choice": named("get_tide")}):
        (choice,) = (await caller.ask(hints=hints(tool_calls=[OSLO]), **fields))["choices"]
        assert choice["finish_reason"] == "stop"
        assert choice["message"]["tool_calls"] == []
        assert '"get_weather"' in choice["message"]["content"]


async def test_full_text_repeats_the_content_and_no_calls(start):
    caller = await start(MindIEConfig(full_text=True))
    chunks = await caller.chunks(tools=TOOLS, hints=hints(tokens=["Let ", "me."], tool_calls=[OSLO]))
    contents = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
    assert contents[0] == "Let "
    assert contents[-1].strip() == chunks[-1]["full_text"].strip() == "Let me."
    assert calls_of(joined(chunks)) == [("get_weather", {"city": "Oslo"})]


# -- what a choice forces --


@pytest.mark.parametrize("family", sorted(TOOL_FORMATS))
@pytest.mark.parametrize("temperature", [0, 1])
async def test_a_required_call_comes_and_follows_its_schema(start, family, temperature):
    caller = await start(tool_format=family)
    fields = {"tools": [tool()], "tool_choice": "required", "max_tokens": 250, "seed": 3, "temperature": temperature}
    (choice,) = (await caller.ask(**fields))["choices"]
    assert choice["finish_reason"] == "tool_calls", choice
    for name, arguments in calls_of(choice["message"]):
        assert name == "get_weather"
        assert set(arguments) == {"city"}
        assert isinstance(arguments["city"], str)


@pytest.mark.parametrize("family", sorted(TOOL_FORMATS))
async def test_a_named_function_is_called_once(start, family):
    caller = await start(tool_format=family)
    fields = {"tools": TOOLS, "tool_choice": named("get_weather"), "max_tokens": 250, "seed": 1}
    (choice,) = (await caller.ask(**fields))["choices"]
    ((name, _),) = calls_of(choice["message"])
    assert name == "get_weather"
    assert choice["message"]["content"] == ""


async def test_a_strict_function_keeps_to_its_schema_where_a_script_does_not(start):
    caller = await start()
    script = hints(tool_calls=[{"name": "get_weather", "arguments": '{"town": 1}'}])
    for strict in (None, False, True):
        fields = {"tools": [tool(strict=strict)], "hints": script, "max_tokens": 200, "seed": 2}
        (choice,) = (await caller.ask(**fields))["choices"]
        ((_, arguments),) = calls_of(choice["message"])
        assert (set(arguments) == {"city"}) is (strict is True)


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({}, False),
        ({"tool_choice": "none"}, False),
        ({"tool_choice": "required"}, True),
        ({"tool_choice": named("f")}, True),
    ],
)
async def test_a_bad_schema_is_refused_only_where_it_must_be_followed(start, fields, refused):
    caller = await start()
    ask = caller.ask(tools=[tool("f", {"type": "object", "properties": {"foo": "bar"}})], max_tokens=4, **fields)
    if not refused:
        assert (await ask)["choices"]
        return
    with pytest.raises(Fault) as caught:
        await ask
    assert (caught.value.name, caught.value.param) == ("mindie.guide_invalid", "tools")


# -- what is refused --


@pytest.mark.parametrize(
    ("options", "fields", "param"),
    [
        ({"tool_format": None}, {"tools": TOOLS}, "tools"),
        ({"features": frozenset({"tools"})}, {"tools": TOOLS, "tool_choice": "required"}, "tool_choice"),
        ({"features": frozenset({"tools"})}, {"tools": TOOLS, "tool_choice": named("f")}, "tool_choice"),
        ({"features": frozenset({"tools"})}, {"tools": [tool(strict=True)]}, "tools[0].function.strict"),
    ],
)
async def test_what_an_engine_cannot_do_is_refused(start, options, fields, param):
    caller = await start(**options)
    with pytest.raises(Fault) as caught:
        await caller.ask(**fields)
    assert (caught.value.name, caught.value.param) == ("unsupported_feature", param)


async def test_functions_without_guides(start):
    caller = await start(features=frozenset({"tools"}))
    for strict in (None, False):
        fields = {"tools": [tool(strict=strict)], "tool_choice": "auto", "hints": hints(tool_calls=[OSLO])}
        assert (await caller.ask(**fields))["choices"][0]["finish_reason"] == "tool_calls"


def nested(depth: int) -> dict[str, Any]:
    """Functions that make a body this deep."""
    inner: dict[str, Any] = {}
    for _ in range(depth - 5):
        inner = {"a": inner}
    return tool(parameters=inner)


async def test_nesting_counts_the_whole_body(start):
    caller = await start()
    assert (await caller.ask(tools=[nested(10)], max_tokens=1))["choices"]
    with pytest.raises(Fault) as caught:
        await caller.ask(tools=[nested(11)], max_tokens=1)
    assert caught.value.entry == "mindie/chat.completions/tools/depth"
    assert caller.context["depth"] == 11
    assert (await caller.ask(max_tokens=1, other=nested(30)))["choices"], "without functions it may be any"


@pytest.mark.parametrize("arguments", ["{", "", "[1,2]", "null", '{"a": ' * 300, '{"a":1} x'])
@pytest.mark.parametrize("family", sorted(TOOL_FORMATS))
async def test_broken_arguments_in_the_history_harm_nobody(start, family, arguments):
    caller = await start(tool_format=family)
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "error"},
    ]
    assert (await caller.ask(messages=messages, tools=TOOLS, max_tokens=2))["choices"]


async def test_what_clients_leave_unset_may_be_null(start):
    caller = await start()
    bare = {"type": "function", "function": {"name": "get_weather"}}
    nothing = {"type": "function", "function": {"name": "get_weather", "description": None, "parameters": None}}
    script = hints(tool_calls=[OSLO])
    answers = [
        await caller.ask(messages=[{"role": "user", "content": "go"}], max_tokens=50, hints=script, **fields)
        for fields in (
            {"tools": [bare]},
            {"tools": [nothing], "chat_template_kwargs": None},
            {"tools": [nothing], "chat_template_kwargs": {"enable_thinking": None}},
        )
    ]
    assert [calls_of(answer["choices"][0]["message"]) for answer in answers] == [
        [("get_weather", {"city": "Oslo"})]
    ] * 3
    assert len({answer["usage"]["prompt_tokens"] for answer in answers}) == 1


async def test_functions_that_no_prompt_holds_are_refused_before_the_template_sees_them(start, monkeypatch):
    caller = await start()
    monkeypatch.delattr(PromptReader, "_tokenized")
    huge = tool(parameters={"type": "object", "description": "a b c! " * 1_000_000})
    with pytest.raises(Fault) as caught:
        await caller.ask(tools=[huge], max_tokens=1)
    assert caught.value.name == "context_overflow"
