"""Llama 3.1 and later: bare objects with `name` and `parameters`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.guiding.grammar import Builder, one_of, repeated
from isogloss.engine.chat.json_text import json_text
from isogloss.engine.chat.python_text import read_keywords
from isogloss.engine.chat.source import Markers, Read, ignore
from isogloss.engine.chat.tools.base import ToolFormat, ToolParser

_TAG = "<|python_tag|>"
_OPENING = re.compile(r"[^\s(]+\(")
_METHOD = ".call"
"""What Llama writes behind the names of its built-in functions and, at times, of others."""
_BETWEEN = "; "
_BLANK = r"\s\x1c-\x1f"
"""What the parser takes for a blank, in the set of a pattern."""


class Llama3Parser(ToolParser):
    """Calls stand at the start of an answer, behind another call, or behind the tag.

    Behind the tag they may also be written as Python.
    """

    starts = Markers(_TAG)

    def _answer(self) -> Read[None]:
        more = True
        while more:
            yield from self._run()
            more = yield from self._source.until(self.starts, self._content)

    def _run(self) -> Read[None]:
        """Calls one after the other."""
        while True:
            yield from self._source.blanks(self._content)
            if not (yield from self._attempt(self._call())):
                return
            yield from self._source.blanks()
            yield from self._source.literal(_BETWEEN.strip())

    def _call(self) -> Read[bool]:
        tagged = yield from self._source.literal(_TAG)
        yield from self._source.blanks()
        if tagged and (yield from self._source.peek()) != "{":
            return (yield from self._python())
        call = self._object()
        found = yield from call.read()
        if found and call.closed:
            self._close()
        elif found:
            yield from self._source.until(self.starts, ignore)
        return found

    def _python(self) -> Read[bool]:
        opening = yield from self._source.matching(_OPENING, self._longest + len(_METHOD))
        if opening is None or not self._start(opening[:-1].removesuffix(_METHOD)):
            return False
        if not (yield from read_keywords(self._source, self._argue)):
            yield from self._source.until(self.starts, ignore)
        return True


class Llama3(ToolFormat):
    """Llama 3.1 and later.

    Guides cannot tell an answer in JSON from a call: under `auto` a text that begins with a brace must be a call, and
    the tag does not come.
    """

    name = "llama3"
    parsed_by = Llama3Parser
    markers = (_TAG,)
    special_tokens = True

    def write(self, calls: Sequence[FunctionCall]) -> str:
        """One object a call."""
        return _BETWEEN.join(f"{_opening(call.name)}{call.arguments}}}" for call in calls)

    def calls(
        self, build: Builder, functions: Sequence[Function], *, at_least: int, at_most: int | None, strict_only: bool
    ) -> str:
        """Each as `write` writes it."""
        ways = [
            f"{build.text(_opening(function.name))} {build.arguments(function, strict_only)}" for function in functions
        ]
        call = build.rule(f"{one_of(ways)} {build.text('}')}")
        return repeated(call, build.text(_BETWEEN), at_least, at_most)

    def free(self, build: Builder, thought: str) -> str:
        """Anything in which the parser finds no beginning of a call."""
        text = rf"/[{_BLANK}]+|[{_BLANK}]*[^{_BLANK}{{](?s:.*)/ & ~/(?s:.*){re.escape(_TAG)}(?s:.*)/"
        if thought:
            text += rf" & ~/[{_BLANK}]*{re.escape(thought)}(?s:.*)/"
        return build.terminal(text) + "?"


def _opening(name: str) -> str:
    return f'{{"name": {json_text(name)}, "parameters": '
