"""MindIE's messages: what a chat template gets of them, and what the rules of stage `prompt` read about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, cast

from isogloss_api.mindie import requests
from pydantic import BaseModel

from isogloss.dialects.mindie_media import FIELDS, MediaPart, field_of, media_parts

_PART_TYPES = ("text", *FIELDS)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a request, read."""

    messages: list[dict[str, object]]
    """As a chat template takes them: only members that the document lists, lists of texts joined to one text, media as
    placeholders of their kind."""
    chars: int
    """Characters of all texts but the data and addresses of media."""
    empty: int
    """Messages without content that must have some."""
    unreadable_parts: int
    """Content parts that do not hold exactly the one thing that their type names."""
    tool_messages_without_id: int
    media: list[MediaPart]
    """In the order in which they stand in the messages."""

    def texts(self) -> Iterator[str]:
        """The texts that make up the contents."""
        for message in self.messages:
            content = message["content"]
            if isinstance(content, str):
                yield content
            elif isinstance(content, list):
                yield from (part.get("text", "") for part in content)

    @property
    def pieces(self) -> int:
        """Messages, calls and media, each of which takes a token of the prompt at least."""
        calls = sum(len(cast("Sized", message.get("tool_calls", ()))) for message in self.messages)
        return len(self.messages) + calls + len(self.media)

    @property
    def most_media(self) -> int:
        """Media in the content that has most of them."""
        return max(Counter(part.path[1] for part in self.media).values(), default=0)

    @property
    def flawed(self) -> bool:
        """Whether there is anything that a template should not see; the document's rules refuse it."""
        return bool(self.empty or self.unreadable_parts or self.tool_messages_without_id)


def read(messages: Sequence[requests.Message]) -> Conversation:
    """Read the messages of a request."""
    return Conversation(
        messages=[_for_template(message) for message in messages],
        chars=sum(_chars(message) for message in messages),
        empty=sum(not _text(message) and not _may_be_empty(message) for message in messages),
        unreadable_parts=sum(not _is_readable(part) for message in messages for part in _parts(message)),
        tool_messages_without_id=sum(
            message.role == "tool" and not isinstance(message.tool_call_id, str) for message in messages
        ),
        media=[*media_parts(messages)],
    )


def nesting(body: object) -> int:
    """How many objects and lists deep a value is; 0 for a text or number."""
    depth, level = 0, [body]
    while level := [value for value in level if isinstance(value, BaseModel | dict | list)]:
        depth += 1
        level = [inner for value in level for inner in _inside(value)]
    return depth


def _inside(value: BaseModel | dict[str, object] | list[object]) -> Iterable[object]:
    if isinstance(value, BaseModel):
        return [*vars(value).values(), *(value.model_extra or {}).values()]
    return value.values() if isinstance(value, dict) else value


def _for_template(message: requests.Message) -> dict[str, object]:
    read: dict[str, object] = {"role": message.role, "content": _content(message)}
    calls = _calls(message)
    if calls:
        read["tool_calls"] = [_call(call) for call in calls]
    if isinstance(message.tool_call_id, str):
        read["tool_call_id"] = message.tool_call_id
    return read


def _call(call: requests.ToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": call.type, "function": function}


def _calls(message: requests.Message) -> list[requests.ToolCall]:
    """Only an assistant calls functions; in other turns calls mean nothing."""
    calls = message.tool_calls
    return calls if message.role == "assistant" and isinstance(calls, list) else []


def _parts(message: requests.Message) -> list[requests.ContentPart]:
    return message.content if isinstance(message.content, list) else []


def _content(message: requests.Message) -> str | list[dict[str, str]]:
    parts = _parts(message)
    return [*map(_part, parts)] if any(map(field_of, parts)) else _text(message)


def _part(part: requests.ContentPart) -> dict[str, str]:
    name = field_of(part)
    if name is not None:
        return {"type": FIELDS[name].kind}
    return {"type": "text", "text": part.text if isinstance(part.text, str) else ""}


def _text(message: requests.Message) -> str:
    """The content as one text; "" where there is none, which templates join to texts more readily than null."""
    if isinstance(message.content, str):
        return message.content
    return "".join(part.text for part in _parts(message) if isinstance(part.text, str))


def _chars(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, BaseModel):
        known = (inner for name, inner in vars(value).items() if name not in FIELDS)
        return sum(map(_chars, known)) + _chars(value.model_extra)
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_chars, inside))


def _may_be_empty(message: requests.Message) -> bool:
    """Parts of other kinds are content too; calls stand for an assistant's."""
    return bool(_calls(message) or _parts(message))


def _is_readable(part: requests.ContentPart) -> bool:
    held = [name for name in _PART_TYPES if name in part.model_fields_set]
    named = part.type if isinstance(part.type, str) else None
    return len(held) == 1 and named in (None, held[0])
