"""Guides for answers with calls and thoughts."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.engine.api import Guide
from isogloss.engine.chat.calls import Function
from isogloss.engine.chat.guiding.grammar import Builder
from isogloss.engine.chat.reasoning import ReasoningFormat
from isogloss.engine.chat.tools.base import ToolFormat

_BLANKS = r"/[ \t\r\n]{0,8}/"
"""Between a thought and the answer."""


def call_guide(
    format: ToolFormat,
    functions: Sequence[Function],
    *,
    at_least: int = 0,
    at_most: int | None = None,
    strict_only: bool = True,
    reasoning: ReasoningFormat | None = None,
    inside: bool = False,
) -> Guide | None:
    """A guide for an answer with so many calls of these functions; None if nothing is to be constrained.

    With `at_least=0` the answer is free text in which calls may come, any number of them; else it is calls alone. The
    arguments of strict functions follow their schema; those of the others do too unless `strict_only` says that any
    object will do for them. With a `reasoning` format a thought may come first; the marker of a call inside it begins
    a call if the thought's own start is part of the answer and the rest is free. Raises GuideError for a schema that
    cannot be written down.
    """
    if not functions or (not at_least and strict_only and not any(function.strict for function in functions)):
        return None
    build = Builder()
    if at_least:
        answer = build.marker(format.trigger) if format.trigger else ""
        answer += " " + format.calls(build, functions, at_least=at_least, at_most=at_most, strict_only=strict_only)
    else:
        call = format.calls(build, functions, at_least=1, at_most=None, strict_only=strict_only)
        answer = _free(build, format, call, "" if reasoning is None or inside else reasoning.start)
    whole = answer if reasoning is None else _thought_first(build, answer, reasoning, inside)
    # After the calls that it must make, a model that turns to prose wants no further one.
    return build.guide(whole, yields=at_least > 0)


def after_reasoning(guide: Guide, reasoning: ReasoningFormat, inside: bool) -> Guide:
    """The same guide for the answer that follows a free thought. Not for a guide that is composite already."""
    build = Builder()
    return build.guide(_thought_first(build, build.part(guide), reasoning, inside))


def _free(build: Builder, format: ToolFormat, call: str, thought: str) -> str:
    """Text in which calls may come, behind a thought if it begins with this mark."""
    if not format.trigger:
        return f"{call} | {format.free(build, thought)}"
    return f"({build.until(format.trigger)} {call})* {build.free}"


def _thought_first(build: Builder, answer: str, reasoning: ReasoningFormat, inside: bool) -> str:
    thought = f"{build.until(reasoning.end)} {_BLANKS}"
    rest = build.rule(answer)
    return f"{thought} {rest}" if inside else f"({build.marker(reasoning.start)} {thought})? {rest}"
