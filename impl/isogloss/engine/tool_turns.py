"""Functions, their calls and results in conversations, as chat templates want them, or can take them at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, cast

from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.tools.base import ToolFormat

Turn = Mapping[str, object]

_PROBE = "e7d1"


@dataclass(frozen=True, slots=True)
class ToolTurns:
    """For a template that knows no functions: writes them into the system's turn and calls into the assistant's.

    Both in a family's own format.
    """

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
        calls = [_call(call) for call in calls_of(turn)]
        if not calls:
            return turn
        rest = {name: value for name, value in turn.items() if name != "tool_calls"}
        return {**rest, "content": _and(turn.get("content"), self.format.write(calls))}

    def _told(self, turns: list[Turn], functions: Sequence[Function]) -> list[Turn]:
        told = self.format.instructions(functions)
        if turns and turns[0]["role"] == "system":
            return [{**turns[0], "content": _and(turns[0].get("content"), told)}, *turns[1:]]
        return [{"role": "system", "content": told}, *turns]


def role_of_results(render: Callable[[list[dict[str, Any]]], str], role: str = "tool") -> str:
    """The role of results that a template shows: this one if it takes it, else `user`."""
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": role, "content": _PROBE},
    ]
    try:
        return role if _PROBE in render(turns) else "user"
    # A template is a program of the model's and fails in its own ways.
    except Exception:
        return "user"


def calls_of(turn: Turn) -> Sequence[Mapping[str, Any]]:
    """The calls of a turn, as OpenAI writes them."""
    return cast("Sequence[Mapping[str, Any]]", turn.get("tool_calls") or ())


def with_names(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """The same with the name of the function that each result comes from, as some templates want it."""
    names: dict[object, str] = {}
    named: list[dict[str, Any]] = []
    for turn in turns:
        names |= {call.get("id"): call["function"]["name"] for call in calls_of(turn)}
        answered = turn.get("tool_call_id")
        known = turn["role"] == "tool" and answered in names and "name" not in turn
        named.append({**turn, "name": names[answered]} if known else dict(turn))
    return named


def one_call_a_turn(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """The same with a turn for each call, and its result behind it."""
    single: list[dict[str, Any]] = []
    place = 0
    while place < len(turns):
        turn, place = turns[place], place + 1
        if len(calls_of(turn)) < 2:
            single.append(dict(turn))
            continue
        results = [*takewhile(lambda turn: turn["role"] == "tool", turns[place:])]
        single += _parted(turn, results)
        place += len(results)
    return single


def _parted(turn: Turn, results: Sequence[Turn]) -> Iterator[dict[str, Any]]:
    """A turn with several calls and the results behind it, call by call; results of none of them come last."""
    calls = calls_of(turn)
    for number, call in enumerate(calls):
        yield {**turn, "content": "" if number else turn.get("content"), "tool_calls": [call]}
        yield from (dict(result) for result in results if result.get("tool_call_id") == call.get("id"))
    known = {call.get("id") for call in calls}
    yield from (dict(result) for result in results if result.get("tool_call_id") not in known)


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
