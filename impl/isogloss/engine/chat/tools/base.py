"""What every family's way of calling functions can do."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from isogloss.engine.chat.calls import (
    CallArguments,
    CallStarted,
    Content,
    Function,
    FunctionCall,
    Piece,
    joined,
)
from isogloss.engine.chat.guiding.grammar import Builder
from isogloss.engine.chat.json_text import CallReader
from isogloss.engine.chat.source import Markers, Read, Source

_ESCAPED = 12
"""Characters that JSON may take for one of a name."""


class ToolParser(ABC):
    """Finds the calls in one answer, as its text arrives.

    What is no call of a known function is text, unchanged. Where there is nothing but blanks before, between or behind
    calls, there is no text.
    """

    starts: ClassVar[Markers]
    """What a call begins with."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = {function.name: function for function in functions}
        self._longest = max(map(len, self._functions), default=0) * _ESCAPED + 2
        """Characters that may be the name of a function."""
        self._source = Source()
        self._pieces: list[Piece] = []
        self._calls = 0
        self._argued = False
        self._blanks: list[str] = []
        """Text so far since the last call, while it is blank."""
        self._solid = False
        """Whether there was other text since the last call."""
        self._reading = self._answer()
        next(self._reading, None)

    def push(self, text: str) -> list[Piece]:
        """What is certain after this text."""
        self._source.add(text)
        return self._read()

    def end(self) -> list[Piece]:
        """What is left at the end of the answer."""
        self._source.close()
        pieces = self._read()
        return pieces if self._calls else joined([*pieces, Content("".join(self._blanks))])

    def _read(self) -> list[Piece]:
        next(self._reading, None)
        pieces, self._pieces = self._pieces, []
        return joined(pieces)

    def _answer(self) -> Read[None]:
        while (yield from self._source.until(self.starts, self._content)):
            yield from self._attempt(self._call())

    @abstractmethod
    def _call(self) -> Read[bool]:
        """Read what may be a call, from its marker on; False if it is none."""

    def _attempt(self, call: Read[bool]) -> Read[bool]:
        """Read what may be a call; what turns out to be none is text."""
        self._source.mark()
        found = yield from call
        if not found:
            self._content(self._source.marked())
        return found

    def _content(self, text: str) -> None:
        if self._solid:
            self._pieces.append(Content(text))
            return
        self._blanks.append(text)
        if text and not text.isspace():
            self._solid = True
            self._pieces.append(Content("".join(self._blanks)))
            self._blanks.clear()

    def _start(self, name: str) -> bool:
        """A call begins, if its function is known."""
        if name not in self._functions:
            return False
        self._source.marked()
        self._pieces.append(CallStarted(self._calls, name))
        self._calls += 1
        self._argued = self._solid = False
        self._blanks.clear()
        return True

    def _argue(self, text: str) -> None:
        """The next part of the arguments of the call that began last."""
        self._argued = True
        self._pieces.append(CallArguments(self._calls - 1, text))

    def _close(self) -> None:
        """The call is whole; one without arguments has none."""
        if not self._argued:
            self._argue("{}")

    def _object(self) -> CallReader:
        return CallReader(self._source, self._start, self._argue, self._longest)


class ToolFormat(ABC):
    """How a family of models writes calls."""

    name: ClassVar[str]
    parsed_by: ClassVar[type[ToolParser]]
    markers: ClassVar[tuple[str, ...]] = ()
    """Texts of tokens that mark calls."""
    special_tokens: ClassVar[bool] = False
    """Whether these may be special tokens of a vocabulary, so that a text without special tokens lacks them."""
    trigger: ClassVar[str] = ""
    """The marker with which calls begin; empty if only their place shows them, at the start of the answer."""
    result_role: ClassVar[str] = "tool"
    """Who hands in what a function has returned, where the template takes that one."""

    def parser(self, functions: Sequence[Function]) -> ToolParser:
        """For one answer of a model that was told of these functions."""
        return self.parsed_by(functions)

    @abstractmethod
    def write(self, calls: Sequence[FunctionCall]) -> str:
        """The text that a model of the family would write."""

    @abstractmethod
    def calls(
        self, build: Builder, functions: Sequence[Function], *, at_least: int, at_most: int | None, strict_only: bool
    ) -> str:
        """So many calls, behind the trigger, as an expression of a grammar."""

    def free(self, build: Builder, thought: str) -> str:
        """Text without calls, as an expression; only asked of formats without a trigger.

        Text that begins with the mark of a `thought`, if one is named, must not hide a call behind it.
        """
        return build.free

    def instructions(self, functions: Sequence[Function]) -> str:
        """A system text for models whose chat template knows no functions."""
        example = self.write([FunctionCall("NAME", '{"PARAMETER": "VALUE"}')])
        told = "\n".join(json.dumps(_told(function), ensure_ascii=False) for function in functions)
        return (
            f"You may call these functions, each described by a line of JSON:\n{told}\n\n"
            f"To call one, answer in exactly this form, with its name and its arguments filled in:\n{example}\n\n"
            "Call a function only where it helps; otherwise answer in plain text."
        )


def _told(function: Function) -> Mapping[str, object]:
    said = {"name": function.name, "description": function.description, "parameters": function.parameters}
    return {key: value for key, value in said.items() if value is not None}
