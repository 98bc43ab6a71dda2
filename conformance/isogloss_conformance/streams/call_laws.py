"""What must hold across the parts of calls and thoughts in a stream. Each law says in words what is wrong, or None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isogloss_conformance.streams import laws
from isogloss_conformance.streams.laws import Chunk

Json = Any


@dataclass(slots=True)
class Joined:
    """A call put together from its parts."""

    name: Json
    id: Json
    arguments: str = ""


def joined(chunks: Sequence[Chunk]) -> list[Joined] | str:
    """The calls of choice 0, or what is wrong with a part.

    A part belongs to the call that its index names; indexes begin with 0 and rise by one. The first part of a call has
    id, type and name; no later one has another id, or a name. Arguments are always a text.
    """
    calls: list[Joined] = []
    for part in (part for message in _messages(chunks) for part in message.get("tool_calls") or ()):
        wrong = _begin(calls, part) if part.get("index") == len(calls) else _later(calls, part)
        if wrong is not None:
            return wrong
        arguments = (part.get("function") or {}).get("arguments")
        if not isinstance(arguments, str):
            return f"the arguments of a part are {arguments!r}, not a text"
        calls[part["index"]].arguments += arguments
    ids = {call.id for call in calls}
    return calls if len(ids) == len(calls) else f"{len(calls)} calls share {len(ids)} ids"


def _begin(calls: list[Joined], part: Mapping[str, Json]) -> str | None:
    call = Joined((part.get("function") or {}).get("name"), part.get("id"))
    if not call.name or not call.id or part.get("type") != "function":
        return f"the first part of a call lacks id, type or name: {part}"
    calls.append(call)
    return None


def _later(calls: list[Joined], part: Mapping[str, Json]) -> str | None:
    index = part.get("index")
    if not isinstance(index, int) or not 0 <= index < len(calls):
        return f"a part has the index {index!r} after {len(calls)} calls"
    if part.get("id") not in (None, calls[index].id):
        return f"the id of call {index} changes"
    named_again = (part.get("function") or {}).get("name")
    return f"the name of call {index} comes again" if named_again else None


def equal_calls(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """The joined calls are those of the same call without a stream, and so is the content."""
    found = joined(chunks)
    if isinstance(found, str):
        return found
    functions = [call["function"] for message in _messages([whole]) for call in message.get("tool_calls") or ()]
    expected = [(function["name"], function["arguments"]) for function in functions]
    got = [(call.name, call.arguments) for call in found]
    if not got:
        return "no call came"
    return laws.equal_text(chunks, whole) if got == expected else f"joined: {got}, without a stream: {expected}"


def ended(chunks: Sequence[Chunk], wanted: str | None) -> str | None:
    """The finish reason is the wanted one, if any; and `tool_calls` exactly where calls came and nothing was cut."""
    reason = next((choice["finish_reason"] for choice in laws.choices(chunks) if choice.get("finish_reason")), None)
    calls = any(message.get("tool_calls") for message in _messages(chunks))
    if wanted is not None and reason != wanted:
        return f"finish_reason is {reason!r}, not {wanted!r}"
    if reason != "length" and (reason == "tool_calls") is not calls:
        return f"finish_reason is {reason!r}, and {'calls' if calls else 'no calls'} came"
    return None


def only_thinks(whole: Chunk) -> bool:
    """Whether an answer was cut inside a thought."""
    (message,) = _messages([whole])[:1] or ({},)
    said = message.get("content") or message.get("tool_calls")
    return bool(message.get("reasoning_content")) and not said and ended([whole], "length") is None


def equal_thoughts(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """The joined thoughts and content are those of the same call without a stream, and no thought follows content."""
    messages = _messages(chunks)
    got = "".join(message.get("reasoning_content") or "" for message in messages)
    expected = "".join(message.get("reasoning_content") or "" for message in _messages([whole]))
    if got != expected:
        return f"joined: {got[:120]!r}, without a stream: {expected[:120]!r}"
    begun = next((number for number, message in enumerate(messages) if message.get("content")), len(messages))
    if any(message.get("reasoning_content") for message in messages[begun + 1 :]):
        return "a thought follows the content"
    return laws.equal_text(chunks, whole)


def _messages(chunks: Sequence[Chunk]) -> list[Mapping[str, Json]]:
    """Deltas, or whole messages, of choice 0."""
    mine = (choice for choice in laws.choices(chunks) if choice.get("index", 0) == 0)
    return [choice.get("delta") or choice.get("message") or {} for choice in mine]
