"""Functions and thoughts through real servers: the openai SDK, every family's format, a real model."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import openai
import pytest
from isogloss.engine.chat import TOOL_FORMATS
from support.server import Server

Start = Callable[..., AbstractContextManager[Server]]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city.", "parameters": CITY}},
    {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object"}}},
]
MESSAGES: list[Any] = [{"role": "user", "content": "What is the weather in Oslo?"}]
CALLS = [
    {"name": "get_weather", "arguments": '{"city": "Oslo, \\"N\\""}'},
    {"name": "get_time", "arguments": '{"zone": "UTC", "exact": true}'},
]


def sdk(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/mindie/v1", api_key="none", max_retries=0)


def script(**members: Any) -> dict[str, str]:
    return {"X-Isogloss-Script": base64.b64encode(json.dumps(members).encode()).decode()}


def streamed(client: openai.OpenAI, **body: Any) -> tuple[str, list[tuple[str, Any]], str | None]:
    """Content, calls and the reason of the end, as the SDK puts deltas together."""
    with client.chat.completions.stream(messages=MESSAGES, **body) as stream:
        for _ in stream:
            pass
        (choice,) = stream.get_final_completion().choices
    calls = choice.message.tool_calls or []
    read = [(call.function.name, json.loads(call.function.arguments)) for call in calls]
    assert len({call.id for call in calls}) == len(calls)
    return choice.message.content or "", read, choice.finish_reason


@pytest.fixture
def client(scripted: Server) -> Iterator[openai.OpenAI]:
    with sdk(scripted) as client:
        yield client


@pytest.mark.parametrize("steps", [{}, {"chunk": 4}, {"one_delta": True}])
def test_the_sdk_joins_streamed_calls(client: openai.OpenAI, steps: dict[str, Any]) -> None:
    headers = script(tokens=["Let me see."], tool_calls=CALLS, **steps)
    content, calls, reason = streamed(client, model="scripted", tools=TOOLS, extra_headers=headers)
    assert (content.strip(), reason) == ("Let me see.", "tool_calls")
    assert calls == [(call["name"], json.loads(call["arguments"])) for call in CALLS]


def test_a_conversation_with_a_call(client: openai.OpenAI) -> None:
    first = client.chat.completions.create(
        model="scripted", messages=MESSAGES, tools=TOOLS, extra_headers=script(tool_calls=CALLS[:1])
    )
    message = first.choices[0].message
    assert message.tool_calls is not None
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "3 degrees"}
    history: list[Any] = [*MESSAGES, message.model_dump(exclude_none=True), result]
    headers = script(tokens=["It is cold."])
    second = client.chat.completions.create(model="scripted", messages=history, tools=TOOLS, extra_headers=headers)
    assert second.choices[0].message.content == "It is cold."
    assert second.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_forced_call_is_whole(client: openai.OpenAI, choice: Any) -> None:
    body = {"model": "scripted", "tools": TOOLS[:1], "tool_choice": choice, "max_tokens": 60, "temperature": 0}
    content, calls, reason = streamed(client, **body)
    assert (content, reason, len(calls)) == ("", "tool_calls", 1)
    assert calls[0][0] == "get_weather"
    assert [*calls[0][1]] == ["city"]


@pytest.mark.parametrize("family", sorted(TOOL_FORMATS))
def test_every_family(start: Start, family: str) -> None:
    headers = script(tokens=["<think>", "Hm.", "</think>"], tool_calls=CALLS)
    body = {"model": "scripted", "tools": TOOLS, "extra_headers": headers}
    options = ("--engine", "scripted", "--tool-parser", family, "--reasoning-parser", "qwen3")
    with start(*options) as server, sdk(server) as client:
        plain = client.chat.completions.create(messages=MESSAGES, **body)
        content, calls, reason = streamed(client, **body)
    message = plain.choices[0].message
    assert message.tool_calls is not None
    assert (content, reason) == ("", "tool_calls")
    assert calls == [(call["name"], json.loads(call["arguments"])) for call in CALLS]
    assert [call.function.name for call in message.tool_calls] == ["get_weather", "get_time"]
    assert message.reasoning_content == "Hm."  # type: ignore[attr-defined]
    assert plain.usage is not None
    assert plain.usage.completion_tokens_details is not None
    assert plain.usage.completion_tokens_details.reasoning_tokens == 3


@pytest.mark.model
def test_a_real_model_calls_what_it_must(calling: Server) -> None:
    with sdk(calling) as client:
        model = client.models.list().data[0].id
        choice = {"type": "function", "function": {"name": "get_weather"}}
        body = {"model": model, "tools": TOOLS, "tool_choice": choice, "max_tokens": 80, "temperature": 0}
        content, calls, reason = streamed(client, **body)
    assert (content, reason) == ("", "tool_calls")
    assert calls == [("get_weather", {"city": "Oslo"})]
