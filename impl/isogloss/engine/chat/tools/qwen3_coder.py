"""Qwen3-Coder: a tag a parameter, with the plain value inside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import ClassVar

from isogloss.engine.api import Guide, GuideError
from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.guiding.arguments import Argument, Arguments, arguments_of
from isogloss.engine.chat.guiding.grammar import Builder, one_of, repeated
from isogloss.engine.chat.guiding.parameters import kinds_of, options_of, takes_text
from isogloss.engine.chat.guiding.texts import one_of_term, terminated, text_terms
from isogloss.engine.chat.guiding.untagged import untagged
from isogloss.engine.chat.json_text import json_text
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
_CLOSING = f"\n{_PARAMETER_END}\n"
# The last two end a value whose own end is missing.
_VALUE_ENDS = Markers(f"\n{_PARAMETER_END}", _PARAMETER_END, f"\n{_PARAMETER}", f"\n{_FUNCTION_END}")
_UNTAGGED = untagged([_PARAMETER_END], [_PARAMETER, _FUNCTION_END])
"""What none of them ends."""
_JSON_STARTS = ("{", "[", '"')
_QUOTES = re.compile(r'\\.|"', re.DOTALL)


class Qwen3CoderParser(ToolParser):
    """Values of parameters that take texts are texts; others are what JSON or Python make of them, if they can."""

    starts = Markers(_START, _FUNCTION)
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
        whole = yield from self._source.until(_VALUE_ENDS, self._argue_text, cut=True)
        if whole:
            self._argue('"')
        return whole

    def _argue_text(self, text: str) -> None:
        self._argue(json_text(text)[1:-1])

    def _value(self, kinds: frozenset[str]) -> Read[bool]:
        written = _Written((yield from self._source.peek()))
        while whole := (yield from self._source.until(_VALUE_ENDS, written.read)):
            # A text of JSON may hold the tag, but no line end.
            if not written.is_quoted() or (yield from self._source.peek()) != "<":
                break
            written.read(self._source.take(len(_PARAMETER_END)))
        if whole:
            self._argue(json_of("".join(written.parts), kinds))
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


class _Written:
    """A value so far, and whether it ends inside a text of JSON."""

    __slots__ = ("_counted", "_is_json", "_quoted", "parts")

    def __init__(self, first: str) -> None:
        self._is_json = first in _JSON_STARTS
        self._quoted = False
        self._counted = 0
        self.parts: list[str] = []

    def read(self, text: str) -> None:
        """The next part."""
        self.parts.append(text)

    def is_quoted(self) -> bool:
        """Asked where a tag begins, which no escape leads into."""
        if self._is_json:
            marks = _QUOTES.findall("".join(self.parts[self._counted :]))
            self._quoted ^= marks.count('"') % 2 == 1
            self._counted = len(self.parts)
        return self._quoted


class Qwen3Coder(ToolFormat):
    """Qwen3-Coder.

    Guides honour the schema of each argument, which ones are required and their order, and allow no others; where a
    schema names none, any number of those that `additionalProperties` allows. Texts stand without quotes, but for those
    whose schema takes null too and limits them, or says more elsewhere, as behind a `$ref`: these are JSON. Refused are
    patterns with look-around, back references or anchors inside, formats that `FORMAT_TERMS` lacks, what a schema says
    of its arguments together, names with a `>` or a line end, and options that hold the tag that ends a value.
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
    strict = function.strict or not strict_only
    wanted = arguments_of(function, _is_writable) if strict else Arguments([], others={})
    if wanted.others is not None:
        value = _value(build, Argument("", wanted.others, required=False)) if wanted.others else _text(build)
        return f"({build.text(_PARAMETER)} {build.terminal(_NAME)} {build.text('>' + chr(10))} {value})*"
    return " ".join(
        f"({build.text(f'{_PARAMETER}{argument.name}>{chr(10)}')} {_value(build, argument)})"
        f"{'' if argument.required else '?'}"
        for argument in wanted.known
    )


def _is_writable(name: str) -> bool:
    return not {">", "\n"} & set(name) and len(name) <= _LONGEST_NAME


def _value(build: Builder, argument: Argument) -> str:
    if argument.is_free:
        return _text(build)
    if not argument.is_text:
        return f"{build.schema(argument.schema)} {build.text(_CLOSING)}"
    options, terms = options_of(argument.schema), text_terms(argument.schema)
    if options is None:
        return _text(build, *terms)
    if not all(map(_is_readable, options)):
        raise GuideError("unsupported")
    if terms or not options:
        return _text(build, *terms, one_of_term(options))
    return one_of([build.text(option + _CLOSING) for option in options])


def _is_readable(option: str) -> bool:
    return _VALUE_ENDS.find(option + _CLOSING, 0) == len(option)


def _text(build: Builder, *terms: str) -> str:
    """A text for which these terms hold, up to the end of the parameter, which the parser finds there and no sooner."""
    return build.part(Guide("grammar", terminated(["UNTAGGED", *terms], _CLOSING, _UNTAGGED)))
