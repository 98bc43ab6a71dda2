"""Reading keyword arguments as Python writes them, and writing them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection

from isogloss.engine.chat.guiding.parameters import kind_of
from isogloss.engine.chat.json_text import json_text
from isogloss.engine.chat.source import Read, Sink, Source

_PLAIN = re.compile(r"""[^'"()\[\]{},\\]+""")
_LONGEST_NAME = 256
_DEEPEST = 32
"""Brackets inside each other in a value that is read as one."""


def json_of(literal: str, kinds: Collection[str] = ()) -> str:
    """A value as JSON: as it stands if it is some, anew if it is written as Python; what is neither is a text.

    With the `kinds` of JSON that are wanted, what is of another kind is a text too, if texts are among them.
    """
    for read in (_json, _python):
        try:
            value, written = read(literal)
        # Everything that the text of a model can make of a parser.
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        if "string" not in kinds or _is_one_of(value, kinds):
            return written
    return json_text(literal)


def _json(text: str) -> tuple[object, str]:
    """Numbers may be of any size: they are looked at no closer."""
    value = json.loads(text, parse_int=lambda _: 0, parse_float=lambda _: 0.5, parse_constant=_refuse)
    return value, text.strip()


def _python(text: str) -> tuple[object, str]:
    value = ast.literal_eval(text)
    return value, json_text(value)


def _refuse(name: str) -> object:
    raise ValueError(name)


def _is_one_of(value: object, kinds: Collection[str]) -> bool:
    kind = kind_of(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def mapping_of(arguments: str) -> dict[str, object]:
    """The arguments of a call one by one; none if they are no JSON object."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def is_keyword(name: str) -> bool:
    """Whether an argument of this name can be written down."""
    return name.isidentifier() and len(name) <= _LONGEST_NAME


def read_keywords(source: Source, sink: Sink) -> Read[bool]:
    """`a=1, b='x')` as a JSON object, each member as soon as it is whole; False where that breaks off."""
    before = "{"
    while (yield from source.peek()) != ")":
        name = yield from source.before("=", _LONGEST_NAME)
        if name is None or not is_keyword(name.strip()):
            return False
        value = _Value(source)
        if not (yield from value.read()):
            return False
        sink(f"{before}{json_text(name.strip())}: {value.json()}")
        before = ", "
        yield from source.literal(",")
        yield from source.blanks()
    source.take(1)
    sink("}" if before == ", " else "{}")
    return True


class _Value:
    """One value, up to the comma or the bracket behind it."""

    __slots__ = ("_deepest", "_depth", "_parts", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._depth = 0
        self._deepest = 0
        self._parts: list[str] = []

    def json(self) -> str:
        """The value as JSON; as a text if it is no literal, or nests deeply."""
        text = "".join(self._parts).strip()
        return json_of(text) if self._deepest <= _DEEPEST else json_text(text)

    def read(self) -> Read[bool]:
        """Whether it is whole."""
        while char := (yield from self._source.peek()):
            if not self._depth and char in ",)":
                return True
            if char in "'\"":
                yield from self._string(self._keep(1))
            elif not self._keep_plain():
                self._bracket(self._keep(1))
        return False

    def _string(self, quote: str) -> Read[None]:
        while char := (yield from self._source.peek()):
            if char == "\\":
                yield from self._source.pair()
                self._keep(2)
            elif char in "'\"":
                self._keep(1)
                if char == quote:
                    return
            elif not self._keep_plain():
                self._keep(1)

    def _bracket(self, char: str) -> None:
        self._depth += (char in "([{") - (char in ")]}")
        self._deepest = max(self._deepest, self._depth)

    def _keep(self, size: int) -> str:
        taken = self._source.take(size)
        self._parts.append(taken)
        return taken

    def _keep_plain(self) -> str:
        return self._keep(len(self._source.seen(_PLAIN)))
