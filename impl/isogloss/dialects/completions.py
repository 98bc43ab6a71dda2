"""A completion while the engine works on it: every choice of every prompt, and the count of tokens.

The same for whole answers and streams: a choice takes in what the engine adds and gives out what is new since it
was last asked, after each event or once at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isogloss.dialects.logprobs import Form, Logprobs, LogprobWriter
from isogloss.engine.api import Delta, Finish, FinishReason


@dataclass(frozen=True, slots=True)
class Fragment:
    """What came new in one choice."""

    index: int
    text: str
    logprobs: Logprobs | None
    """None if the call does not want any; empty lists where text came without a token or before its token is due."""
    finish: Finish | None
    """Set in the last fragment of a choice."""
    token_ids: tuple[int, ...] = ()
    """Tokens generated since the last fragment. The text of the last ones may come in a later fragment."""
    first: bool = False
    """Whether the choice begins here."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the choice ended; None while it goes on."""
        return None if self.finish is None else self.finish.reason

    @property
    def stop_reason(self) -> int | str | None:
        """The stop text or stop token that ended the choice."""
        return None if self.finish is None else self.finish.stop


@dataclass(slots=True)
class Tally:
    """Tokens of one call so far."""

    prompt_tokens: int
    """Each prompt counts once, however many choices it has."""
    completion_tokens: int = 0
    """All that were generated, also for candidates that are not returned."""
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt_tokens + self.completion_tokens


class Choice:
    """One choice while it grows."""

    __slots__ = ("_finish", "_first", "_logprobs", "_parts", "_shown", "_token_ids", "index", "logprob")

    def __init__(self, index: int, form: Form | None) -> None:
        self.index = index
        self.logprob = 0.0
        """Cumulative log probability of the tokens so far, where the engine reports scores."""
        self._finish: Finish | None = None
        self._first = True
        self._logprobs = None if form is None else LogprobWriter(form)
        self._parts: list[str] = []
        self._shown = 0
        """Characters of the choice's text so far, an echoed prompt included."""
        self._token_ids: list[int] = []

    def open(self, text: str, logprobs: Logprobs | None) -> None:
        """Begin with an echoed prompt; before anything is added."""
        self._parts.append(text)
        self._shown = len(text)
        if self._logprobs is not None and logprobs is not None:
            self._logprobs.open(logprobs, len(text))

    def add(self, delta: Delta) -> None:
        """Take in what one step of the engine added."""
        self._parts.append(delta.text)
        self._shown += len(delta.text)
        self._finish = delta.finish
        self._token_ids += delta.token_ids
        self.logprob += sum(score.chosen.logprob for score in delta.scores)
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
        fragment = Fragment(self.index, text, logprobs, finish, tuple(self._token_ids), self._first)
        self._token_ids.clear()
        self._first = False
        return fragment


class Completion:
    """All choices of one call; the index of a choice is its prompt's position * candidates + its number."""

    __slots__ = ("_candidates", "_choices", "tally")

    def __init__(self, prompt_tokens: Sequence[int], candidates: int, form: Form | None) -> None:
        """`prompt_tokens` has one count per prompt; `candidates` is how many choices each prompt gets."""
        self._candidates = candidates
        self._choices = [Choice(index, form) for index in range(len(prompt_tokens) * candidates)]
        self.tally = Tally(sum(prompt_tokens))

    def of_prompt(self, position: int) -> list[Choice]:
        """The choices of the prompt at this position."""
        return self._choices[position * self._candidates : (position + 1) * self._candidates]

    def best_of_prompt(self, position: int, n: int) -> list[Choice]:
        """The `n` likeliest choices of a prompt, best first; all of them in their own order if there are no more."""
        choices = self.of_prompt(position)
        if n >= len(choices):
            return choices
        return sorted(choices, key=lambda choice: choice.logprob, reverse=True)[:n]

    def add(self, position: int, delta: Delta) -> Choice:
        """Take in a delta of the prompt at this position; the choice that grew by it."""
        self.tally.completion_tokens += len(delta.token_ids)
        choice = self._choices[position * self._candidates + delta.choice]
        choice.add(delta)
        return choice
