"""The Hermes form, which Qwen2.5 and the text models of Qwen3 write too: JSON between two tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.grammar import Builder, one_of, repeated
from isogloss.engine.chat.json_text import json_text
from isogloss.engine.chat.source import Markers, Read, ignore
from isogloss.engine.chat.tools.base import ToolFormat, ToolParser

_START = "<tool_call>"
_END = "</tool_call>"
_REST = re.compile(r"[\s}\]]+")
"""Models close more brackets than they have opened, at times."""


class HermesParser(ToolParser):
    """`<tool_call>`, an object with `name` and `arguments`, `</tool_call>`."""

    starts = Markers(_START)
    _ends: ClassVar[Markers] = Markers(_START, _END)

    def _call(self) -> Read[bool]:
        yield from self._source.literal(_START)
        yield from self._source.blanks()
        call = self._object()
        if not (yield from call.read()):
            return False
        if call.closed:
            self._close()
            yield from self._rest()
        else:
            yield from self._source.until(self._ends, ignore)
        yield from self._source.literal(_END, cut=True)
        return True

    def _rest(self) -> Read[None]:
        while (yield from self._source.peek()) and self._source.take_all(_REST):
            pass


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
        return repeated(call, f"{build.text(chr(10))} {build.marker(_START)}", at_least, at_most)


def _opening(name: str) -> str:
    return f'{{"name": {json_text(name)}, "arguments": '
