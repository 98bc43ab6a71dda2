"""Mutants that are wrong about functions and thoughts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from isogloss_conformance.mutants.streams import each
from isogloss_conformance.mutants.wire import Got, Memory, Mutant, Sent

Json = Any
Part = dict[str, Json]
EFFECT = "mindie/effects"
S = "mindie/streams"


def _ignores(field: str, killer: str) -> Mutant:
    return Mutant(f"ignores {field}", killer, lambda sent: sent.having(**{field: ...}) if field in sent.json else sent)


def _asked(name: str, killer: str, change: Callable[[Json], Json | None]) -> Mutant:
    """Changes what is asked, where there is something to change."""

    def request(sent: Sent) -> Sent:
        changed = change(sent.json)
        return sent if changed is None else replace(sent, body=json.dumps(changed).encode())

    return Mutant(name, killer, request)


def _choices(body: Part, name: str, change: Callable[[Part, Part], Part]) -> Part:
    """Changes each choice: given it and its message, or delta, as `name` says."""
    return {**body, "choices": [change(choice, choice.get(name) or {}) for choice in body.get("choices", [])]}


def _answers(name: str, killer: str, change: Callable[[Part, Part], Part]) -> Mutant:
    """Changes each choice of an answer without a stream."""

    def answer(sent: Sent, got: Got) -> Got:
        return got.holding(_choices(got.json, "message", change)) if got.json.get("choices") else got

    return Mutant(name, killer, answer=answer)


def _streams(name: str, killer: str, change: Callable[[Part, Part], Part]) -> Mutant:
    """Changes each choice of a chunk."""
    return each(name, killer, lambda memory, chunk: _choices(chunk, "delta", change))


def _parts(name: str, killer: str, change: Callable[[Memory, Part], Part]) -> Mutant:
    """Changes each part of a call in a stream."""

    def chunk(memory: Memory, found: Part) -> Part:
        def choice(choice: Part, delta: Part) -> Part:
            parts = [change(memory, part) for part in delta.get("tool_calls") or ()]
            return {**choice, "delta": {**delta, "tool_calls": parts}} if parts else choice

        return _choices(found, "delta", choice)

    return each(name, killer, chunk)


def _function(part: Part, **members: Json) -> Part:
    return {**part, "function": {**part["function"], **members}}


def _lenient(body: Json) -> Json | None:
    """Takes no function for strict."""
    tools = body.get("tools")
    return {**body, "tools": [_function(tool, strict=False) for tool in tools]} if tools else None


def _any_function(body: Json) -> Json | None:
    return {**body, "tool_choice": "required"} if isinstance(body.get("tool_choice"), dict) else None


def _forgets_calls(body: Json) -> Json | None:
    """The template leaves out what functions returned."""
    told = [message for message in body.get("messages", []) if message.get("role") != "tool"]
    return {**body, "messages": told} if len(told) < len(body.get("messages", [])) else None


def _one_id(choice: Part, message: Part) -> Part:
    calls = [{**call, "id": "call_0"} for call in message.get("tool_calls", [])]
    return {**choice, "message": {**message, "tool_calls": calls}}


def _objects(choice: Part, message: Part) -> Part:
    """Arguments as an object, not as a text."""
    calls = [_function(call, arguments=_loaded(call)) for call in message.get("tool_calls", [])]
    return {**choice, "message": {**message, "tool_calls": calls}}


def _loaded(call: Part) -> Json:
    try:
        return json.loads(call["function"]["arguments"])
    except ValueError:
        return {}


def _repeats_calls(choice: Part, message: Part) -> Part:
    said = "".join(json.dumps(call["function"]) for call in message.get("tool_calls", []))
    return {**choice, "message": {**message, "content": message["content"] + said}}


def _repeats_thought(place: str) -> Callable[[Part, Part], Part]:
    return lambda choice, message: {
        **choice,
        place: {**message, "content": message.get("reasoning_content", "") + message["content"]},
    }


def _no_thought(choice: Part, delta: Part) -> Part:
    return {**choice, "delta": {name: value for name, value in delta.items() if name != "reasoning_content"}}


def _reads_as(old: str, new: str) -> Callable[[Part, Part], Part]:
    """One finish reason for another."""
    return lambda choice, message: {**choice, "finish_reason": new} if choice["finish_reason"] == old else choice


def _usage(name: str, change: Callable[[Part], Part]) -> Mutant:
    def answer(sent: Sent, got: Got) -> Got:
        usage = got.json.get("usage")
        return got.holding({**got.json, "usage": change(usage)}) if usage else got

    return Mutant(name, f"{EFFECT}/reasoning", answer=answer)


def _uncounted(usage: Part) -> Part:
    return {name: value for name, value in usage.items() if name != "completion_tokens_details"}


def _overcounted(usage: Part) -> Part:
    return {**usage, "completion_tokens_details": {"reasoning_tokens": usage["completion_tokens"] + 1}}


CALLS = (
    _ignores("tools", f"{EFFECT}/tools"),
    _ignores("tool_choice", f"{EFFECT}/tool_choice_none"),
    _ignores("tool_choice", f"{EFFECT}/tool_choice_required"),
    _ignores("tool_choice", f"{EFFECT}/tool_choice_named"),
    _ignores("chat_template_kwargs", f"{EFFECT}/enable_thinking"),
    _asked("a named function is any", f"{EFFECT}/tool_choice_named", _any_function),
    _asked("no function is strict", f"{EFFECT}/tool_strict", _lenient),
    _asked("results of calls are forgotten", f"{EFFECT}/tool_history", _forgets_calls),
    _answers("all calls have one id", f"{EFFECT}/tool_calls", _one_id),
    _answers("calls stay in the content", f"{EFFECT}/tool_calls", _repeats_calls),
    _answers("arguments are an object", f"{EFFECT}/tool_choice_required", _objects),
    _answers("arguments are an object", f"{S}/tool_calls", _objects),
    _answers("thoughts stay in the content", f"{EFFECT}/reasoning", _repeats_thought("message")),
    _usage("tokens of thoughts are not counted", _uncounted),
    _usage("thoughts have more tokens than the answer", _overcounted),
    _parts("all parts of calls have one index", f"{S}/tool_calls", lambda memory, part: {**part, "index": 0}),
    _parts("the id of a call changes", f"{S}/tool_calls", lambda memory, part: {**part, "id": f"call_{memory.events}"}),
    _parts("arguments are null", f"{S}/tool_calls", lambda memory, part: _function(part, arguments=None)),
    _parts("the name comes with each part", f"{S}/tool_calls", lambda memory, part: _function(part, name="weather")),
    _parts(
        "arguments lose their blanks",
        f"{S}/tool_calls",
        lambda m, part: _function(part, arguments=part["function"]["arguments"].strip()),
    ),
    _streams("calls end with stop", f"{S}/tool_finish", _reads_as("tool_calls", "stop")),
    _streams("what is cut ends with tool_calls", f"{S}/tool_finish", _reads_as("length", "tool_calls")),
    _streams("a text ends with tool_calls", f"{S}/tool_finish", _reads_as("stop", "tool_calls")),
    _answers("an answer with calls ends with stop", f"{S}/tool_finish", _reads_as("tool_calls", "stop")),
    _streams("thoughts stay in the content", f"{S}/reasoning", _repeats_thought("delta")),
    _streams("thoughts are dropped", f"{S}/reasoning", _no_thought),
)
