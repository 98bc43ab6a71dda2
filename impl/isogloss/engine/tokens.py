"""The seam inside an engine: a source of tokens below, the text stage above.

A source (the torch stepper, a script) samples tokens and ends choices by token rules: end of text, stop
tokens, token counts. The text stage (`engine.text`) turns tokens into events: characters, stop strings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from isogloss.engine.api import FinishReason, GenerationRequest, Timing


@dataclass(frozen=True, slots=True)
class RawScore:
    """Log probability and rank of one chosen token, and the most likely ones, best first."""

    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...] = ()
    """Pairs of token id and log probability; the position in the tuple gives the rank."""


@dataclass(frozen=True, slots=True)
class TokenEnd:
    """A choice was ended by a token rule."""

    reason: FinishReason
    stop_token: int | None = None
    """The id, if a stop token (not the end-of-text token) ended it."""
    completes: bool = False
    """Whether the token is the last one of a guided text, and part of it."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One token of one choice."""

    choice: int
    token_id: int
    score: RawScore | None = None
    end: TokenEnd | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request has left the queue."""

    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PromptScored:
    """Scores of the prompt's tokens, None for the first."""

    scores: tuple[RawScore | None, ...]


TokenEvent = Admitted | PromptScored | Sampled


class TokenStream(Protocol):
    """The tokens of one request while they are made."""

    def __aiter__(self) -> AsyncIterator[list[TokenEvent]]:
        """What became known together, one list a step, choices in index order."""
        ...

    def end(self, choice: int) -> None:
        """The text stage has ended this choice: make no more tokens for it. Idempotent."""
        ...

    def timing(self, choice: int) -> Timing:
        """Measured times of a choice so far."""
        ...

    def close(self) -> None:
        """Abort what still runs and free its place. Idempotent, callable at any time."""
        ...


class TokenSource(Protocol):
    """Makes tokens."""

    def open(self, request: GenerationRequest) -> TokenStream:
        """Queue a request. Raises EngineRefused or EngineOverloaded."""
        ...
