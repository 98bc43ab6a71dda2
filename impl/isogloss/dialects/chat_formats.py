"""How the served model writes calls and thoughts, as far as one request is concerned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isogloss.engine.api import Engine, Guide
from isogloss.engine.chat import (
    REASONING_FORMATS,
    TOOL_FORMATS,
    AnswerParser,
    Function,
    ReasoningFormat,
    ToolFormat,
    after_reasoning,
)

_TAIL = 32
"""Tokens at the end of a prompt that show whether a thought has begun."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What to look for in an answer."""

    reasoning: ReasoningFormat | None = None
    """None if the model's thoughts are not told apart."""
    tools: ToolFormat | None = None
    """None if no calls are looked for."""
    functions: Sequence[Function] = ()
    inside: bool = False
    """Whether the answer begins inside a thought."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts that must not be lost, should they be special tokens."""
        thought = () if self.reasoning is None else (self.reasoning.start, self.reasoning.end)
        return thought if self.tools is None else (*thought, *self.tools.markers)

    def parser(self) -> AnswerParser:
        """For one sequence."""
        tools = None if self.tools is None else self.tools.parser(self.functions)
        return AnswerParser(self.reasoning, tools, inside=self.inside)

    def guide(self, guide: Guide) -> Guide:
        """A guide for what the model says once it has thought."""
        return guide if self.reasoning is None else after_reasoning(guide, self.reasoning, self.inside)


def answer_form(engine: Engine, prompt: Sequence[int], functions: Sequence[Function] = ()) -> AnswerForm:
    """The form of an answer to this prompt by a model that was told of these functions."""
    card = engine.card
    reasoning = None if card.reasoning_format is None else REASONING_FORMATS[card.reasoning_format]
    tools = TOOL_FORMATS[card.tool_format] if functions and card.tool_format is not None else None
    inside = False
    if reasoning is not None:
        inside = reasoning.begins_inside(engine.tokenizer.decode(prompt[-_TAIL:], skip_special_tokens=False))
    return AnswerForm(reasoning, tools, functions, inside)
