"""Bytes of a request body to JSON, strictly.

Refused: anything but UTF-8, NaN and Infinity, numbers that no double can hold, duplicate keys, lone surrogates,
nesting deeper than the parser's bound (200), integers of more than 4,300 digits, an empty body, trailing text, and
more objects and lists than the document's `x-limits` allows.
"""

from __future__ import annotations

import math
import re

import jiter

from isogloss_spec.faults import Fault
from isogloss_spec.types import Json

_REASONS = (
    ("EOF", "it ends too early"),
    ("duplicate key", "a key occurs twice in one object"),
    ("recursion limit", "it is nested too deeply"),
    ("number out of range", "a number has too many digits"),
    ("unicode", "it is not valid UTF-8"),
    ("hex escape", "a surrogate stands alone"),
    ("surrogate", "a surrogate stands alone"),
    ("trailing characters", "text follows the value"),
)
_POSITION = re.compile(r"at (line \d+ column \d+)$")


def parse(raw: bytes, most_containers: int | None = None) -> Json:
    """The JSON value of a body. Raises the fault `malformed_json`, never with text of the body."""
    try:
        value = jiter.from_json(raw, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise Fault("malformed_json", values={"reason": _reason(str(error))}) from None
    if not _finite(value):  # jiter reads a number beyond the doubles as infinity
        raise Fault("malformed_json", values={"reason": "a number is too large"})
    # Brackets in texts count here, so that only then it is worth a closer look.
    if most_containers is not None and raw.count(b"{") + raw.count(b"[") > most_containers < _containers(value):
        raise Fault("malformed_json", values={"reason": "it holds too many objects and lists"})
    return value


def _containers(value: Json) -> int:
    """Objects and lists in a value, itself included."""
    count, waiting = 0, [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict | list):
            count += 1
            waiting += inner.values() if isinstance(inner, dict) else inner
    return count


def _reason(message: str) -> str:
    reason = next((ours for theirs, ours in _REASONS if theirs in message), "it breaks the grammar")
    position = _POSITION.search(message)
    return f"{reason}, at {position[1]}" if position else reason


def _finite(value: Json) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list) or _MAY_BE_INFINITE.isdisjoint(map(type, value)):
        return True
    return all(_finite(item) for item in value if type(item) in _MAY_BE_INFINITE)


_MAY_BE_INFINITE = {float, dict, list}
