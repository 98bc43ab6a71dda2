"""Functions and their calls in conversations for models whose chat template knows neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.tools.base import ToolFormat

Turn = Mapping[str, object]

_PROBE = "e7d1"


@dataclass(frozen=True, slots=True)
class ToolTurns:
    """Writes functions into the system's turn and calls into the assistant's, in a family's own format."""

    format: ToolFormat
    result_role: str = "tool"
    """Who hands in what a function has returned."""

    def of(self, turns: Sequence[Turn], tools: Sequence[Turn]) -> list[Turn]:
        """The conversation in turns that any template takes."""
        written = [self._written(turn) for turn in turns]
        return self._told(written, [_function(tool) for tool in tools]) if tools else written

    def _written(self, turn: Turn) -> Turn:
        if turn["role"] == "tool":
            return {**turn, "role": self.result_role}
        calls = [_call(call) for call in cast("Sequence[Mapping[str, Any]]", turn.get("tool_calls") or ())]
        if not calls:
            return turn
        rest = {name: value for name, value in turn.items() if name != "tool_calls"}
        return {**rest, "content": _and(turn.get("content"), self.format.write(calls))}

    def _told(self, turns: list[Turn], functions: Sequence[Function]) -> list[Turn]:
        told = self.format.instructions(functions)
        if turns and turns[0]["role"] == "system":
            return [{**turns[0], "content": _and(turns[0].get("content"), told)}, *turns[1:]]
        return [{"role": "system", "content": told}, *turns]


def role_of_results(render: Callable[[list[dict[str, Any]]], str]) -> str:
    """The role of results that a template shows: `tool` if it takes that one, else `user`."""
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "tool", "content": _PROBE},
    ]
    try:
        return "tool" if _PROBE in render(turns) else "user"
    # A template is a program of the model's and fails in its own ways.
    except Exception:
        return "user"


def _and(content: object, text: str) -> object:
    """A content, a text or a list of parts, with a text behind it."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return f"{content}\n\n{text}" if content else text


def _function(tool: Turn) -> Function:
    told = cast("Mapping[str, Any]", tool["function"])
    return Function(told["name"], told.get("description"), told.get("parameters"))


def _call(call: Mapping[str, Any]) -> FunctionCall:
    return FunctionCall(call["function"]["name"], call["function"]["arguments"])
