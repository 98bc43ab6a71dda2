"""The Hermes form, which Qwen2.5 and the text models of Qwen3 write too: JSON between two tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.guiding.grammar import Builder, one_of, repeated
from isogloss.engine.chat.json_text import json_text
from isogloss.engine.chat.source import Markers, Read, ignore
from isogloss.engine.chat.tools.base import ToolFormat, ToolParser

_START = "<tool_call>"
_END = "</tool_call>"
_LIST = "["
_DOUBLED = "{"
"""Templates of Qwen2.5 show the object in braces that are written twice, and some models write them so."""
_REST = re.compile(r"[\s}\]]+")
"""Models close more brackets than they have opened, at times."""
_MORE = re.compile(r"[\s}\],]+")


class HermesParser(ToolParser):
    """`<tool_call>`, an object with `name` and `arguments`, `</tool_call>`; or several objects, perhaps in a list."""

    starts = Markers(_START)
    _ends: ClassVar[Markers] = Markers(_START, _END)

    def _call(self) -> Read[bool]:
        yield from self._source.literal(_START)
        yield from self._source.blanks()
        listed = yield from self._source.literal(_LIST)
        yield from self._source.blanks()
        rest = _MORE if listed else _REST
        if not (yield from self._one(rest)):
            return False
        while (yield from self._source.peek()) == "{" and (yield from self._attempt(self._one(rest))):
            pass
        yield from self._source.literal(_END, cut=True)
        return True

    def _one(self, rest: re.Pattern[str]) -> Read[bool]:
        if (yield from self._source.pair()) == "{{":
            yield from self._source.literal(_DOUBLED)
        call = self._object()
        if not (yield from call.read()):
            return False
        if not call.closed:
            yield from self._source.until(self._ends, ignore)
            return True
        self._close()
        while (yield from self._source.peek()) and self._source.take_all(rest):
            pass
        return True


class Hermes(ToolFormat):
    """Models of the Hermes family, and Qwen2.5."""

    name = "hermes"
    parsed_by = HermesParser
    markers = (_START, _END)
    special_tokens = True
    trigger = _START

    def write(self, calls: Sequence[FunctionCall]) -> str:
        """One pair of tags a call, one call a line."""
        return "\n".join(f"{_START}\n{_opening(call.name)}{call.arguments}}}\n{_END}" for call in calls)

    def calls(
        self, build: Builder, functions: Sequence[Function], *, at_least: int, at_most: int | None, strict_only: bool
    ) -> str:
        """Each as `write` writes it."""
        ways = [
            f"{build.text(_opening(function.name))} {build.arguments(function, strict_only)}" for function in functions
        ]
        call = build.rule(f"{build.text(chr(10))} {one_of(ways)} {build.text('}' + chr(10))} {build.marker(_END)}")
        return repeated(call, build.marker(_START), at_least, at_most, blank=build.text("\n"))


def _opening(name: str) -> str:
    return f'{{"name": {json_text(name)}, "arguments": '
