"""Reading JSON as a model writes it: in parts, perhaps cut off, perhaps broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from isogloss.engine.chat.source import Read, Sink, Source, ignore

Start = Callable[[str], bool]
"""Is told a name, and says whether a call of it begins."""

_NAME = re.compile(r'"(?:[^"\\<]|\\.)*"', re.DOTALL)
"""A text without the character that begins all families' marks."""
_IN_STRING = re.compile(r'[^"\\]+')
_PLAIN = re.compile(r'[^\s"{}\[\],<`]+')
_BLANKS = re.compile(r"\s+")
_OPENING = re.compile(r"[{\[]+")

_LONGEST_KEY = 64
_ARGUMENTS = ("arguments", "parameters")
_KEYS = ("name", *_ARGUMENTS, "type", "id")
"""Members that an object may have before its name shows that it is a call."""


def json_text(value: object) -> str:
    """A value as JSON. Raises ValueError, TypeError or RecursionError for what is none."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    # Half a surrogate pair can be written down as an escape only.
    return text if text.isascii() or _encodable(text) else json.dumps(value, allow_nan=False)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def read_name(source: Source, longest: int) -> Read[str | None]:
    """A text that may be a name, without its quotes; None if none comes, or a longer one, as it is written."""
    if (yield from source.peek()) != '"':
        return None
    written = yield from source.matching(_NAME, longest)
    try:
        value = json.loads(written or "null", strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def read_value(source: Source, sink: Sink) -> Read[None]:
    """Any value. Brackets are counted and nothing else is checked.

    Ends early at `<` and at a backtick outside of texts: no value has them, and all families' marks begin with one.
    """
    reader = _ValueReader(source, sink)
    while (yield from reader.part()):
        pass


class _ValueReader:
    """Reads one value part by part; its trailing blanks are left out."""

    __slots__ = ("_blanks", "_depth", "_sink", "_source")

    def __init__(self, source: Source, sink: Sink) -> None:
        self._source = source
        self._sink = sink
        self._depth = 0
        self._blanks: list[str] = []

    def part(self) -> Read[bool]:
        """Read one part; False once the value is over."""
        char = yield from self._source.peek()
        if char == '"':
            self._show(self._source.take(1))
            yield from self._string()
        elif char and char in "{[":
            opened = self._source.take_all(_OPENING)
            self._depth += len(opened)
            self._show(opened)
        elif self._depth and char and char in "}]":
            self._depth -= 1
            self._show(self._source.take(1))
        else:
            return self._between(char)
        return self._depth > 0

    def _between(self, char: str) -> bool:
        if not char or char in "<`" or (not self._depth and (char in ",}]" or char.isspace())):
            return False
        if char.isspace():
            self._blanks.append(self._source.take_all(_BLANKS))
        else:
            self._show(self._source.take(1) if char == "," else self._source.take_all(_PLAIN))
        return True

    def _string(self) -> Read[None]:
        """The rest of a text, its closing quote included."""
        while char := (yield from self._source.peek()):
            if char == "\\":
                self._show((yield from self._source.pair()))
                self._source.take(2)
            elif char == '"':
                self._show(self._source.take(1))
                return
            else:
                self._show(self._source.take_all(_IN_STRING))

    def _show(self, text: str) -> None:
        if self._blanks:
            self._sink("".join(self._blanks))
            self._blanks.clear()
        self._sink(text)


def _object_of(written: str) -> str:
    """The object that a value stands for, as text: one that is written as a text, or an empty one for null."""
    if written == "null":
        return "{}"
    try:
        text = json.loads(written, strict=False)
        return text if isinstance(text, str) and isinstance(json.loads(text), dict) else written
    except (ValueError, RecursionError):
        return written


class CallReader:
    """Reads a call that is written as one object: `{"name": …, "arguments": {…}}`, with `parameters` as well.

    `start` is told the name and says whether it is known; `argue` gets the arguments as they arrive. Arguments that
    are written as a text, or as null, are the object that they stand for.
    """

    __slots__ = ("_argue", "_argued", "_early", "_longest", "_source", "_start", "_started", "closed")

    def __init__(self, source: Source, start: Start, argue: Sink, longest: int) -> None:
        self._source = source
        self._start = start
        self._argue = argue
        self._longest = longest
        self._started = False
        self._argued = False
        self._early: list[str] = []
        """Arguments that came before the name."""
        self.closed = False
        """Whether the object is whole."""

    def read(self) -> Read[bool]:
        """Whether a call began. Leaves the source behind the object, or where it is none."""
        if (yield from self._source.peek()) != "{":
            return False
        self._source.take(1)
        while (yield from self._member()):
            pass
        return self._started

    def _member(self) -> Read[bool]:
        """Read one member; False at the end, and where no member follows."""
        yield from self._source.blanks()
        char = yield from self._source.peek()
        if char == "}":
            self._source.take(1)
            self.closed = True
            return False
        if char == ",":
            self._source.take(1)
            yield from self._source.blanks()
        key = yield from read_name(self._source, _LONGEST_KEY)
        if key is None or not (self._started or key in _KEYS) or not (yield from self._colon()):
            return False
        return (yield from self._value(key))

    def _colon(self) -> Read[bool]:
        yield from self._source.blanks()
        found = yield from self._source.literal(":")
        yield from self._source.blanks()
        return found

    def _value(self, key: str) -> Read[bool]:
        if key == "name" and not self._started:
            return (yield from self._name())
        if key in _ARGUMENTS and not self._argued:
            self._argued = True
            yield from self._arguments(self._argue if self._started else self._early.append)
        else:
            yield from read_value(self._source, ignore)
        return True

    def _arguments(self, sink: Sink) -> Read[None]:
        if (yield from self._source.peek()) == "{":
            yield from read_value(self._source, sink)
            return
        parts: list[str] = []
        yield from read_value(self._source, parts.append)
        if parts:
            sink(_object_of("".join(parts)))

    def _name(self) -> Read[bool]:
        name = yield from read_name(self._source, self._longest)
        self._started = name is not None and self._start(name)
        if self._started and self._early:
            self._argue("".join(self._early))
        return self._started
