"""Scripts: what a caller tells the scripted engine to produce.

A script is JSON in base64, sent as the header `X-Isogloss-Script`. It names its tokens in one way:

- `tokens`: their texts; `bytes_hex`: their bytes; both followed by `tool_calls`, if there are any.
- `prefer_tokens`: texts that are produced over and over.
- none of them: the engine's own model chooses.

Further members: `end` (`stop`, the default, or `length`), `fail_after` (an EngineFailure after that
many tokens of each choice; with 0, instead of the first event), `delay_ms_first` and `delay_ms_each`
(the first falls back on the second), for tool calls, which are written in the engine's format,
`chunk` (tokens a step), `one_delta` (all in one step), `truncate_tokens` (cut there, with `length`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from isogloss.engine.api import EngineRefused, FinishReason
from isogloss.engine.chat.calls import FunctionCall
from isogloss.engine.chat.registry import TOOL_FORMATS

HINT = "x-isogloss-script"

_SOURCES = ("tokens", "bytes_hex", "prefer_tokens")
_CALL_PIECES = re.compile(r"\w+|\W")


@dataclass(frozen=True, slots=True)
class Script:
    """A script that has been read. The default lets the model choose."""

    tokens: tuple[bytes, ...] | None = None
    endless: bool = False
    """Whether the tokens repeat for ever."""
    end: FinishReason = "stop"
    step: int = 1
    """Tokens a step and choice."""
    fail_after: int | None = None
    first_delay: float = 0.0
    """Seconds before the first token."""
    delay: float = 0.0
    """Seconds before each other token."""


def read_script(hints: Mapping[str, str], tool_format: str | None = None) -> Script:
    """The script among the hints of a request, its calls in a format. Raises EngineRefused if it is broken."""
    header = hints.get(HINT)
    if header is None:
        return Script()
    members = _checked(_parsed(header))
    each = members.get("delay_ms_each", 0)
    calls = _call_tokens(members, tool_format)
    return Script(
        tokens=_tokens(members, calls),
        endless="prefer_tokens" in members,
        end=cast("FinishReason", "length" if _truncated(members, calls) else members.get("end", "stop")),
        step=_step(members, calls),
        fail_after=members.get("fail_after"),
        first_delay=members.get("delay_ms_first", each) / 1000,
        delay=each / 1000,
    )


def _parsed(header: str) -> dict[str, Any]:
    try:
        value = json.loads(base64.b64decode(header, validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise EngineRefused("the script is not JSON in base64") from error
    if not isinstance(value, dict):
        raise EngineRefused("the script is not a JSON object")
    return value


def _checked(members: dict[str, Any]) -> dict[str, Any]:
    for name, value in members.items():
        if name not in _CHECKS:
            raise EngineRefused(f"the script has an unknown member: {name[:40]!r}")
        if not _CHECKS[name](value):
            raise EngineRefused(f"the script's {name} has a wrong value")
    if sum(source in members for source in _SOURCES) > 1:
        raise EngineRefused("the script names its tokens in more than one way")
    return members


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_delay(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_hex(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return False
    return all(re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", item) for item in value)


def _is_calls(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), str)
        for call in value
    )


_CHECKS: dict[str, Callable[[object], bool]] = {
    "tokens": _is_texts,
    "bytes_hex": _is_hex,
    "prefer_tokens": lambda value: _is_texts(value) and bool(value),
    "tool_calls": _is_calls,
    "one_delta": lambda value: isinstance(value, bool),
    "chunk": lambda value: _is_count(value) and bool(value),
    "truncate_tokens": _is_count,
    "fail_after": _is_count,
    "end": lambda value: value in ("stop", "length"),
    "delay_ms_first": _is_delay,
    "delay_ms_each": _is_delay,
}


def _tokens(members: Mapping[str, Any], calls: Sequence[bytes]) -> tuple[bytes, ...] | None:
    if "bytes_hex" in members:
        own = [bytes.fromhex(item) for item in members["bytes_hex"]]
    elif "prefer_tokens" in members:
        return tuple(_encoded(text) for text in members["prefer_tokens"])
    elif "tokens" in members or "tool_calls" in members:
        own = [_encoded(text) for text in members.get("tokens", ())]
    else:
        return None
    return (*own, *calls[: members.get("truncate_tokens")])


def _call_tokens(members: Mapping[str, Any], tool_format: str | None) -> list[bytes]:
    """The calls as a model of the family writes them."""
    calls = [FunctionCall(call["name"], call["arguments"]) for call in members.get("tool_calls", ())]
    if not calls:
        return []
    if tool_format is None:
        raise EngineRefused("the script has calls, but the engine has no format for them")
    return [_encoded(piece) for piece in _CALL_PIECES.findall(TOOL_FORMATS[tool_format].write(calls))]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _truncated(members: Mapping[str, Any], calls: Sequence[bytes]) -> bool:
    limit: int | None = members.get("truncate_tokens")
    return limit is not None and limit < len(calls)


def _step(members: Mapping[str, Any], calls: Sequence[bytes]) -> int:
    if members.get("one_delta"):
        return max(1, len(calls))
    return int(members.get("chunk", 1))
