"""A completion while the engine works on it: every choice of every prompt, and the count of tokens.

The same for whole answers and streams: a choice takes in what the engine adds and gives out what is new since it
was last asked, after each event or once at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isogloss.dialects.logprobs import Form, Logprobs, LogprobWriter
from isogloss.engine.api import Delta, Event, Finish, PromptScores, Started, TokenScore


@dataclass(frozen=True, slots=True)
class Fragment:
    """What came new in one choice."""

    index: int
    text: str
    logprobs: Logprobs | None
    """None if the call does not want any; empty lists where text came without a token or before its token is due."""
    finish: Finish | None
    """Set in the last fragment of a choice."""


@dataclass(slots=True)
class Tally:
    """Tokens of one call so far."""

    prompt_tokens: int
    """Each prompt counts once, however many choices it has."""
    completion_tokens: int = 0
    cached_tokens: int = 0


class Choice:
    """One choice while it grows."""

    __slots__ = ("_finish", "_logprobs", "_parts", "_shown", "index")

    def __init__(self, index: int, form: Form | None, offset: int = 0) -> None:
        self.index = index
        self._finish: Finish | None = None
        self._logprobs = None if form is None else LogprobWriter(form, offset)
        self._parts: list[str] = []
        self._shown = offset
        """Characters of the choice's text so far, an echoed prompt included."""

    def add(self, delta: Delta) -> None:
        """Take in what one step of the engine added."""
        self._parts.append(delta.text)
        self._shown += len(delta.text)
        self._finish = delta.finish
        if self._logprobs is not None:
            self._logprobs.add(delta.scores)

    def take(self) -> Fragment | None:
        """What is new since the last time; None if nothing is."""
        text = "".join(self._parts)
        self._parts.clear()
        finish = self._finish
        logprobs = None if self._logprobs is None else self._logprobs.take(self._shown, last=finish is not None)
        if not text and finish is None and not (logprobs and logprobs["tokens"]):
            return None
        return Fragment(self.index, text, logprobs, finish)


class Completion:
    """All choices of one call; the index of a choice is its prompt's position * n + its number."""

    __slots__ = ("_n", "choices", "prompt_scores", "tally")

    def __init__(self, prompt_tokens: int, offsets: Sequence[int], n: int, form: Form | None) -> None:
        """`offsets` has one entry per prompt: the characters that an echo puts before its choices' text."""
        self._n = n
        self.choices = [
            Choice(position * n + number, form, offset)
            for position, offset in enumerate(offsets)
            for number in range(n)
        ]
        self.prompt_scores: dict[int, tuple[TokenScore | None, ...]] = {}
        """By position of the prompt, where the engine was asked for them."""
        self.tally = Tally(prompt_tokens)

    def add(self, position: int, event: Event) -> Choice | None:
        """Take in an event of the prompt at this position; the choice that grew by it, if one did."""
        if isinstance(event, Delta):
            self.tally.completion_tokens += len(event.token_ids)
            choice = self.choices[position * self._n + event.choice]
            choice.add(event)
            return choice
        self._add_prompt_event(position, event)
        return None

    def _add_prompt_event(self, position: int, event: Started | PromptScores) -> None:
        if isinstance(event, PromptScores):
            self.prompt_scores[position] = event.scores
        else:
            self.tally.cached_tokens += event.cached_tokens
