"""Effects of the fields about functions and thoughts.

What a weak model says of its own accord proves nothing, so calls are forced: by the request, or by a script where the
engine follows one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isogloss_conformance.effects.caller import Caller, NoReply, Reply
from isogloss_conformance.effects.effect import Effect, rising, unequal
from isogloss_conformance.functions import (
    AT_ONCE,
    ENOUGH,
    SAID,
    SCHEMAS,
    STRANGE_CALL,
    THOUGHT,
    TOOLS,
    TWO_CALLS,
    misfit,
    named,
    part_of,
    tool,
)
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.streams.call_laws import only_thinks

Json = Any
ASKED = {"role": "user", "content": "How is the weather?"}
CALLED = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": '{"winter": true}'}}
    ],
}


def _tools(call: Caller) -> str | None:
    sizes = [call(max_tokens=1, tools=tools).prompt_tokens for tools in ([], TOOLS[:1], TOOLS)]
    return rising(sizes, "with no function, one and two the prompt has")


def _history(call: Caller) -> str | None:
    results = ({"role": "tool", "tool_call_id": "call_1", "content": text} for text in ("Rain.", "Rain and wind " * 9))
    talks = [[ASKED], [ASKED, CALLED], *([ASKED, CALLED, result] for result in results)]
    sizes = [call(max_tokens=1, tools=TOOLS, messages=messages).prompt_tokens for messages in talks]
    return rising(sizes, "with a question, its call, a short result and a long one the prompt has")


def _none(call: Caller) -> str | None:
    if _answer(call, script=TWO_CALLS, tool_choice="none").calls:
        return "a call came though none was wanted"
    return None if _forced(call, "required").calls else "no call came though one was required"


def _required(call: Caller) -> str | None:
    reply = _forced(call, "required")
    return _misfit(reply) if reply.calls else "no call came"


def _named(call: Caller) -> str | None:
    for name in SCHEMAS:
        reply = _forced(call, named(name))
        names = [part_of(found, "name") for found in reply.calls]
        wrong = unequal("the called functions", names, [name]) or _misfit(reply)
        if wrong is not None:
            return wrong
    return None


def _strict(call: Caller) -> str | None:
    """An engine that follows scripts is told to break the schema."""
    choice = "auto" if call.scripted else "required"
    tools = [tool("weather", strict=True)]
    reply = _answer(call, script=STRANGE_CALL, tools=tools, tool_choice=choice)
    return _misfit(reply, closed=True) if reply.calls else "no call came"


def _calls(call: Caller) -> str | None:
    reply = _answer(call, script=TWO_CALLS, tool_choice="auto" if call.scripted else "required")
    ids = [found.get("id") for found in reply.calls]
    if not ids or not all(ids) or len(set(ids)) < len(ids):
        return f"the ids of the calls are {ids}"
    if call.scripted:
        return unequal("the number of calls", len(ids), 2) or unequal("the content", reply.text, SAID)
    left = [found for found in reply.calls if str(part_of(found, "arguments")) in reply.text]
    return f"the content repeats a call: {reply.text!r}" if left else None


def _forced(call: Caller, choice: Json) -> Reply:
    return _answer(call, tool_choice=choice)


def _answer(call: Caller, *, script: Json = None, **fields: Json) -> Reply:
    """An answer with room for calls. Raises NoReply if all of it went into a thought that was cut."""
    reply = call(script=script, **{"max_tokens": ENOUGH, "tools": TOOLS, **AT_ONCE, **fields})
    if only_thinks(dict(reply.body)):
        raise NoReply(Outcome(Status.SKIP, got="unprovable: the model thinks until it is cut", curl=reply.curl))
    return reply


def _misfit(reply: Reply, *, closed: bool = False) -> str | None:
    """What is wrong with the calls of an answer. The last call of one that was cut proves nothing."""
    whole = reply.calls[:-1] if reply.finish_reason == "length" else reply.calls
    wrong = next((found for call in whole if (found := misfit(call, closed=closed))), None)
    if wrong is None and reply.finish_reason not in ("tool_calls", "length"):
        return f"an answer with calls ends with {reply.finish_reason!r}"
    return wrong


def _thinking(call: Caller) -> Reply:
    """An answer that shows a thought. Raises NoReply if the model never does."""
    reply = call(script=THOUGHT, max_tokens=ENOUGH, chat_template_kwargs={"enable_thinking": True})
    if not reply.thought:
        raise NoReply(Outcome(Status.SKIP, got="unprovable: the model shows no thoughts", curl=reply.curl))
    return reply


def _thought(call: Caller) -> str | None:
    reply = _thinking(call)
    if reply.thought.strip() in reply.text or "think>" in reply.text:
        return f"the content repeats the thought: {reply.text[:120]!r}"
    details = (reply.body.get("usage") or {}).get("completion_tokens_details") or {}
    tokens, most = details.get("reasoning_tokens"), reply.completion_tokens
    counted = isinstance(tokens, int) and 0 < tokens <= most
    return None if counted else f"reasoning_tokens is {tokens} of {most}"


def _enable_thinking(call: Caller) -> str | None:
    _thinking(call)
    replies = [call(max_tokens=24, chat_template_kwargs={"enable_thinking": wanted}) for wanted in (True, False)]
    seen = [(reply.prompt_tokens, reply.thought, reply.text) for reply in replies]
    return f"true and false give the same: {seen[0]!r:.200}" if seen[0] == seen[1] else None


def _call_effects() -> Iterator[Effect]:
    fields = ("tools", "tool_choice")
    yield Effect("tools", "Functions lengthen the prompt.", fields, _tools)
    yield Effect("tool_history", "Calls and their results reach the model.", fields, _history)
    yield Effect("tool_choice_none", "tool_choice none lets no call come.", fields, _none)
    yield Effect("tool_choice_required", "tool_choice required brings a call that fits.", fields, _required)
    yield Effect("tool_choice_named", "A named function is called, once, and no other.", fields, _named)
    yield Effect("tool_strict", "The arguments of a strict function fit its schema.", fields, _strict)
    yield Effect("tool_calls", "Calls have ids of their own and are no part of the content.", fields, _calls)
    thinking = ("chat_template_kwargs",)
    yield Effect("reasoning", "A thought is no part of the content, and its tokens are counted.", thinking, _thought)
    yield Effect("enable_thinking", "enable_thinking changes what a thinking model says.", thinking, _enable_thinking)


CALL_EFFECTS = tuple(_call_effects())
