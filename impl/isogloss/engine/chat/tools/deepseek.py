"""The DeepSeek models: V3 and R1 fence their JSON, V3.1 does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.guiding.grammar import Builder, one_of, repeated
from isogloss.engine.chat.json_text import read_value
from isogloss.engine.chat.source import Markers, Read, ignore
from isogloss.engine.chat.tools.base import ToolFormat, ToolParser

_ALL = "<\uff5ctool▁calls▁begin\uff5c>"
_START = "<\uff5ctool▁call▁begin\uff5c>"
_BETWEEN = "<\uff5ctool▁sep\uff5c>"
_END = "<\uff5ctool▁call▁end\uff5c>"
_ALL_END = "<\uff5ctool▁calls▁end\uff5c>"
_KIND = "function"
_FENCE = "```"
_FENCED = f"{_FENCE}json"


class DeepSeekParser(ToolParser):
    """Calls in one frame, each with a frame of its own; takes both forms."""

    starts = Markers(_ALL, _START)
    _ends: ClassVar[Markers] = Markers(_ALL, _START, _END, _ALL_END)

    def _call(self) -> Read[bool]:
        if (yield from self._source.literal(_ALL)):
            yield from self._source.blanks()
        name = yield from self._name()
        if name is None or not self._start(name):
            return False
        yield from self._arguments()
        yield from self._source.blanks()
        yield from self._source.literal(_ALL_END, cut=True)
        return True

    def _name(self) -> Read[str | None]:
        """The name of the call: before the separator, or on the line behind it if a kind stands before it."""
        if not (yield from self._source.literal(_START)):
            return None
        head = yield from self._source.before(_BETWEEN, self._longest)
        if head != _KIND or (yield from self._source.peek()) == "{":
            return head and head.strip()
        name = yield from self._source.before("\n", self._longest)
        return name and name.strip()

    def _arguments(self) -> Read[None]:
        yield from self._source.blanks()
        if (yield from self._source.literal(_FENCED)):
            yield from self._source.blanks()
        yield from read_value(self._source, self._argue)
        if (yield from self._source.until(self._ends, ignore)):
            self._close()
        yield from self._source.literal(_END, cut=True)


class DeepSeekV31(ToolFormat):
    """V3.1."""

    name = "deepseek_v31"
    parsed_by = DeepSeekParser
    markers = (_ALL, _START, _BETWEEN, _END, _ALL_END)
    special_tokens = True
    trigger = _ALL
    _gap: ClassVar[str] = ""
    """Between two calls."""
    _kind: ClassVar[str] = ""
    _opening: ClassVar[str] = ""
    _closing: ClassVar[str] = ""

    def write(self, calls: Sequence[FunctionCall]) -> str:
        """All calls in one frame."""
        written = self._gap.join(map(self._written, calls))
        return f"{_ALL}{written}{_ALL_END}" if calls else ""

    def calls(
        self, build: Builder, functions: Sequence[Function], *, at_least: int, at_most: int | None, strict_only: bool
    ) -> str:
        """All calls in one frame, each as `write` writes it."""
        start, between, end = map(build.marker, (_START, _BETWEEN, _END))
        head = f"{start} {build.text(_KIND)} {between}" if self._kind else start
        ways = [
            f"{build.text(function.name + self._opening)}{'' if self._kind else f' {between}'} "
            f"{build.arguments(function, strict_only)}"
            for function in functions
        ]
        tail = f"{build.text(self._closing)} {end}" if self._closing else end
        call = build.rule(f"{head} {one_of(ways)} {tail}")
        gap = build.text(self._gap) if self._gap else ""
        return f"{repeated(call, gap, at_least, at_most)} {build.marker(_ALL_END)}"

    def _written(self, call: FunctionCall) -> str:
        return f"{_START}{call.name}{_BETWEEN}{call.arguments}{_END}"


class DeepSeek(DeepSeekV31):
    """V3 and R1."""

    name = "deepseek"
    _gap = "\n"
    _kind = _KIND
    _opening = f"\n{_FENCED}\n"
    _closing = f"\n{_FENCE}"

    def _written(self, call: FunctionCall) -> str:
        return f"{_START}{_KIND}{_BETWEEN}{call.name}{self._opening}{call.arguments}{self._closing}{_END}"
