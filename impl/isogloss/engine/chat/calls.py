"""Functions that a model may call, its calls, and the pieces of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Function:
    """What a model is told of a function."""

    name: str
    description: str | None = None
    parameters: Mapping[str, object] | None = None
    """A JSON Schema of the arguments object; None if nothing is said of it."""
    strict: bool = False
    """Whether arguments must follow the schema."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call, as clients see it."""

    name: str
    arguments: str
    """JSON text, usually of an object. What a model wrote may be neither whole nor JSON."""


@dataclass(frozen=True, slots=True)
class Content:
    """Text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text of a thought."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call of a known function begins. Calls of one answer are numbered from 0."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The next part of the arguments of a call; the parts of one call join to its arguments."""

    index: int
    text: str


Piece = Content | Reasoning | CallStarted | CallArguments


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same with neighbours of one kind as one piece, and without empty ones."""
    result: list[Piece] = []
    for (kind, index), group in groupby(pieces, _kind):
        if kind is CallStarted:
            result.extend(group)
        elif text := "".join(piece.text for piece in group if not isinstance(piece, CallStarted)):
            result.append(CallArguments(index, text) if kind is CallArguments else _TEXTS[kind](text))
    return result


def _kind(piece: Piece) -> tuple[type[Piece], int]:
    return type(piece), piece.index if isinstance(piece, CallStarted | CallArguments) else 0


_TEXTS: Mapping[type[Piece], type[Content] | type[Reasoning]] = {Content: Content, Reasoning: Reasoning}
