"""Qwen3-Coder: a tag a parameter, with the plain value inside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import ClassVar

from isogloss.engine.api import GuideError
from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.grammar import Builder, one_of, repeated
from isogloss.engine.chat.json_text import json_text
from isogloss.engine.chat.parameters import Argument, arguments_of, kinds_of, takes_text
from isogloss.engine.chat.python_text import json_of, mapping_of
from isogloss.engine.chat.source import Markers, Read, ignore
from isogloss.engine.chat.tools.base import ToolFormat, ToolParser

_START = "<tool_call>"
_FUNCTION = "<function="
_PARAMETER = "<parameter="
_PARAMETER_END = "</parameter>"
_FUNCTION_END = "</function>"
_END = "</tool_call>"
_LONGEST_NAME = 256
_NAMED = re.compile(r"[^>\n]*[>\n]")
_NAME = r"/[A-Za-z_][A-Za-z0-9_-]{0,63}/"


class Qwen3CoderParser(ToolParser):
    """Values of parameters that take texts are texts; others are what JSON or Python make of them, if they can."""

    starts = Markers(_START, _FUNCTION)
    # The last two end a value whose own end is missing.
    _value_ends: ClassVar[Markers] = Markers(
        f"\n{_PARAMETER_END}", _PARAMETER_END, f"\n{_PARAMETER}", f"\n{_FUNCTION_END}"
    )
    _call_ends: ClassVar[Markers] = Markers(_FUNCTION_END, _END, _START, _FUNCTION)

    def _call(self) -> Read[bool]:
        if (yield from self._source.literal(_START)):
            yield from self._source.blanks()
        if not (yield from self._source.literal(_FUNCTION)):
            return False
        name = yield from self._name(self._longest)
        if name is None or not self._start(name):
            return False
        while (yield from self._parameter(name)):
            pass
        yield from self._ends()
        return True

    def _parameter(self, function: str) -> Read[bool]:
        """Read one parameter; False if none follows, or only a part of one."""
        yield from self._source.blanks()
        if not (yield from self._source.literal(_PARAMETER)):
            return False
        name = yield from self._name(_LONGEST_NAME)
        if name is None:
            return False
        self._argue(f"{', ' if self._argued else '{'}{json_text(name)}: ")
        yield from self._source.literal("\n")
        if takes_text(self._functions[function], name):
            whole = yield from self._text()
        else:
            whole = yield from self._value(kinds_of(self._functions[function], name))
        yield from self._source.literal("\n")
        yield from self._source.literal(_PARAMETER_END)
        return whole

    def _name(self, longest: int) -> Read[str | None]:
        """A name up to the bracket that closes its tag, or to a line end where that one is missing."""
        written = yield from self._source.matching(_NAMED, longest + 1)
        return written and written[:-1]

    def _text(self) -> Read[bool]:
        self._argue('"')
        whole = yield from self._source.until(self._value_ends, self._argue_text, cut=True)
        if whole:
            self._argue('"')
        return whole

    def _argue_text(self, text: str) -> None:
        self._argue(json_text(text)[1:-1])

    def _value(self, kinds: frozenset[str]) -> Read[bool]:
        parts: list[str] = []
        whole = yield from self._source.until(self._value_ends, parts.append)
        if whole:
            self._argue(json_of("".join(parts), kinds))
        return whole

    def _ends(self) -> Read[None]:
        yield from self._source.until(self._call_ends, ignore, cut=True)
        closed = yield from self._source.literal(_FUNCTION_END)
        yield from self._source.blanks()
        closed = (yield from self._source.literal(_END, cut=True)) or closed
        if closed and self._argued:
            self._argue("}")
        elif closed:
            self._close()


class Qwen3Coder(ToolFormat):
    """Qwen3-Coder.

    Guides honour the names of the arguments, which ones are required and their order, and allow no others, but for a
    schema that tells of its arguments only elsewhere, as behind a `$ref`, which leaves them free. Values that are no
    texts follow their schema; of texts only the choice between some is honoured, no length and no pattern. Names must
    not hold a `>` or a line end, nor options the tag that ends a value.
    """

    name = "qwen3_coder"
    parsed_by = Qwen3CoderParser
    markers = (_START, _END)
    trigger = _START

    def write(self, calls: Sequence[FunctionCall]) -> str:
        """Arguments that are no JSON object are left out: the form has no place for them."""
        return "\n".join(map(_written, calls))

    def calls(
        self, build: Builder, functions: Sequence[Function], *, at_least: int, at_most: int | None, strict_only: bool
    ) -> str:
        """Each as `write` writes it."""
        ways = [
            f"{build.text(f'{function.name}>{chr(10)}')} {_parameters(build, function, strict_only)}"
            for function in functions
        ]
        opening = build.text(f"\n{_FUNCTION}")
        call = build.rule(f"{opening} {one_of(ways)} {build.text(f'{_FUNCTION_END}{chr(10)}')} {build.marker(_END)}")
        return repeated(call, build.marker(_START), at_least, at_most, blank=build.text("\n"))


def _written(call: FunctionCall) -> str:
    parameters = "".join(
        f"{_PARAMETER}{key}>\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}\n"
        f"{_PARAMETER_END}\n"
        for key, value in mapping_of(call.arguments).items()
    )
    return f"{_START}\n{_FUNCTION}{call.name}>\n{parameters}{_FUNCTION_END}\n{_END}"


def _parameters(build: Builder, function: Function, strict_only: bool) -> str:
    known = None if strict_only and not function.strict else arguments_of(function, _is_writable)
    if known is None:
        return f"({build.text(_PARAMETER)} {build.terminal(_NAME)} {build.text('>' + chr(10))} {_free_text(build)})*"
    return " ".join(
        f"({build.text(f'{_PARAMETER}{argument.name}>{chr(10)}')} {_value(build, argument)})"
        f"{'' if argument.required else '?'}"
        for argument in known
    )


def _is_writable(name: str) -> bool:
    return not {">", "\n"} & set(name) and len(name) <= _LONGEST_NAME


def _value(build: Builder, argument: Argument) -> str:
    end = f"\n{_PARAMETER_END}\n"
    if any(_PARAMETER_END in option for option in argument.options):
        raise GuideError("unsupported")
    if argument.options:
        return one_of([build.text(option + end) for option in argument.options])
    return _free_text(build) if argument.is_text else f"{build.schema(argument.schema)} {build.text(end)}"


def _free_text(build: Builder) -> str:
    return build.until(f"\n{_PARAMETER_END}\n")
