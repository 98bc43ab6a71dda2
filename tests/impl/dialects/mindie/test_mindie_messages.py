"""Messages: what the template gets of them, and what the rules of stage `prompt` learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.mindie_messages import nesting, read
from isogloss.dialects.mindie_prompt import PromptReader
from isogloss.engine.api import ChatTemplateError
from isogloss_api.mindie import requests
from isogloss_spec.faults import Fault

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}


def conversation(*messages: dict[str, Any]) -> Any:
    return read(requests.ChatRequest.model_validate({"model": "m", "messages": messages}).messages)


def test_texts_and_parts_become_one_text():
    found = conversation(
        {"role": "system", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "Part one. "}, {"text": "Part two."}]},
    )
    assert [message["content"] for message in found.messages] == ["a", "Part one. Part two."]
    assert found.chars == 34
    assert not found.flawed


def test_history_with_calls_stays():
    found = conversation(
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "extra": 1}], "reasoning": "no"},
        {"role": "tool", "content": "3", "tool_call_id": "c"},
    )
    assert found.messages == [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "3", "tool_call_id": "c"},
    ]
    assert found.chars == 31
    assert not found.flawed


@pytest.mark.parametrize(
    ("message", "empty"),
    [
        ({"role": "user"}, 1),
        ({"role": "user", "content": None}, 1),
        ({"role": "user", "content": ""}, 1),
        ({"role": "user", "content": " "}, 0),
        ({"role": "assistant", "content": ""}, 1),
        ({"role": "assistant", "content": "", "tool_calls": []}, 1),
        ({"role": "assistant", "content": "", "tool_calls": [CALL]}, 0),
        ({"role": "assistant", "tool_calls": [CALL]}, 0),
        ({"role": "user", "content": "", "tool_calls": [CALL]}, 1),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}, 0),
    ],
)
def test_empty_messages(message, empty):
    assert conversation(message).empty == empty


@pytest.mark.parametrize(
    ("part", "unreadable"),
    [
        ({"type": "text", "text": "x"}, 0),
        ({"text": "x"}, 0),
        ({"text": "x", "other": 1}, 0),
        ({"type": "image_url", "image_url": {"url": "x"}}, 0),
        ({"audio_url": "x"}, 0),
        ({"type": "text"}, 1),
        ({}, 1),
        ({"type": "text", "image_url": "x"}, 1),
        ({"type": "text", "text": "x", "image_url": "x"}, 1),
        ({"text": "x", "video_url": "x"}, 1),
    ],
)
def test_unreadable_parts(part, unreadable):
    assert conversation({"role": "user", "content": [part, {"text": "y"}]}).unreadable_parts == unreadable


@pytest.mark.parametrize(("message", "count"), [({}, 1), ({"tool_call_id": None}, 1), ({"tool_call_id": "c"}, 0)])
def test_tool_messages_without_id(message, count):
    assert conversation({"role": "tool", "content": "x", **message}).tool_messages_without_id == count


@pytest.mark.parametrize(
    ("value", "depth"), [(1, 0), ([], 1), ({"a": [1]}, 2), ([[[]], [1]], 3), ({"a": {"b": {"c": {}}}}, 4)]
)
def test_nesting(value, depth):
    assert nesting(value) == depth


def test_nesting_of_a_body():
    body = {"model": "m", "messages": [{"role": "user", "content": [{"text": "x", "more": {"a": [[]]}}]}]}
    assert nesting(requests.ChatRequest.model_validate(body)) == nesting(body) == 8


async def test_figures_of_a_plain_request(caller):
    await caller.ask(stop=["ab", "c"])
    assert caller.context == {
        "prompts": 1,
        "prompt_tokens_min": 26,
        "prompt_tokens_max": 26,
        "prompt_tokens_sum": 26,
        "context_length": 64,
        "vocab_size": 2048,
        "messages_chars": 6,
        "empty_messages": 0,
        "unreadable_parts": 0,
        "media_parts": 0,
        "media_address_chars": 0,
        "tool_messages_without_id": 0,
        "stop_chars": 3,
        "server": {
            "maxInputTokenLen": 64,
            "maxSeqLen": 64,
            "maxIterTimes": 512,
            "topK": -1,
            "deepseek": 0,
            "disaggregated": 0,
            "plugins": 0,
        },
    }


@pytest.mark.parametrize(("parameters", "refused"), [({}, False), ({"a": {"b": {"c": {"d": {"e": {}}}}}}, True)])
async def test_depth_counts_with_tools(calling, engine, parameters, refused):
    engine.features = frozenset({"tools"})
    engine.card = replace(engine.card, context_length=1024)
    caller = calling(engine)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"a": parameters}}}]
    if refused:
        with pytest.raises(Fault) as caught:
            await caller.ask(tools=tools)
        assert caught.value.entry == "mindie/chat.completions/tools/depth"
    else:
        await caller.ask(tools=tools)
    assert caller.context["depth"] == (11 if refused else 6)


@pytest.mark.parametrize("calls", [0, 63])
async def test_more_messages_than_tokens_are_refused_before_they_are_rendered(caller, monkeypatch, calls):
    """Tiny ones cost a template far more than their characters tell."""
    monkeypatch.delattr(PromptReader, "_tokenized")
    called = {"role": "assistant", "tool_calls": [CALL] * calls} if calls else {"role": "user", "content": "x"}
    with pytest.raises(Fault) as caught:
        await caller.ask(messages=[called] * (1 if calls else 64))
    assert caught.value.name == "context_overflow"


async def test_a_list_without_parts_is_no_content(calling, engine):
    engine.card = replace(engine.card, context_length=1024)
    caller = calling(engine)
    with pytest.raises(Fault) as caught:
        await caller.ask(messages=[{"role": "user", "content": []}])
    assert caught.value.entry == "mindie/chat.completions/messages/content"
    messages = [{"role": "assistant", "content": [], "tool_calls": [CALL]}]
    assert (await caller.ask(messages=messages, max_tokens=1))["choices"]


async def test_members_that_nobody_knows_count_too(caller):
    with pytest.raises(Fault) as caught:
        await caller.ask(messages=[{"role": "user", "content": "x", "name": "x" * 4 * 2**20}])
    assert caught.value.entry == "mindie/chat.completions/messages/size"


async def test_many_messages_and_parts(caller):
    parts = [{"text": "x"}] * 300
    with pytest.raises(Fault):
        await caller.ask(messages=[{"role": "user", "content": parts}, *[{"role": "user", "content": "y"}] * 300])
    assert caller.context["messages_chars"] == 1804


@pytest.mark.parametrize(
    ("fields", "fault", "entry"),
    [
        ({"messages": [{"role": "user", "content": ""}]}, "rule", "messages/content"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "rule", "messages/parts"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "rule", "messages/tool_call_id"),
        ({"stop": ["x" * 20000, "y" * 20000]}, "rule", "stop/total_length"),
        ({"messages": [{"role": "user", "content": "x" * 4194305}]}, "rule", "messages/size"),
        ({"messages": [{"role": "user", "content": "x y" * 40}]}, "context_overflow", "messages/input_length"),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, "context_overflow", "messages/input_length"),
    ],
)
async def test_refused_before_the_engine_is_asked(caller, engine, fields, fault, entry):
    with pytest.raises(Fault) as caught:
        await caller.ask(**fields)
    assert (caught.value.name, caught.value.entry) == (fault, f"mindie/chat.completions/{entry}")
    assert engine.requests == []


@pytest.mark.parametrize("config", [MindIEConfig(max_input_token_len=25), MindIEConfig(max_seq_len=26)])
async def test_the_configuration_bounds_the_prompt(calling, engine, config):
    with pytest.raises(Fault) as caught:
        await calling(engine, config).ask()
    assert caught.value.name == "context_overflow"


async def test_or_cuts_it(calling, engine):
    config = MindIEConfig(max_input_token_len=20, truncation=True)
    body = await calling(engine, config).ask()
    whole = engine.tokenizer.encode_chat([{"role": "user", "content": "Hi"}])
    assert engine.requests[0].prompt == whole[:20]
    assert body["usage"]["prompt_tokens"] == 20


async def test_a_template_that_refuses(caller, engine, monkeypatch):
    def encode_chat(self: object, messages: object, *, tools: object, arguments: object) -> list[int]:
        raise ChatTemplateError("refused", "roles must alternate")

    monkeypatch.setattr(type(engine.tokenizer), "encode_chat", encode_chat)
    engine.card = replace(engine.card, context_length=8192)
    for content in ("Hi", "x" * 5000):
        with pytest.raises(Fault) as caught:
            await caller.ask(messages=[{"role": "user", "content": content}])
        assert (caught.value.name, caught.value.param) == ("mindie.template_refused", "messages")


async def test_arguments_reach_the_tokenizer(caller, engine, monkeypatch):
    seen = []
    encode = type(engine.tokenizer).encode_chat

    def encode_chat(self: Any, messages: Any, *, tools: Any, arguments: Any) -> list[int]:
        seen.append(arguments)
        return encode(self, messages)

    monkeypatch.setattr(type(engine.tokenizer), "encode_chat", encode_chat)
    await caller.ask(chat_template_kwargs={"enable_thinking": False, "more": [1]})
    await caller.ask(chat_template_kwargs={})
    await caller.ask()
    assert seen == [{"enable_thinking": False, "more": [1]}, {}, {}]


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"use_beam_search": True},
        {"response_format": {"type": "json_object"}},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
    ],
)
async def test_what_waits_for_an_engine_that_has_it(caller, fields):
    with pytest.raises(Fault) as caught:
        await caller.ask(**fields)
    assert caught.value.name == "unsupported_feature"
