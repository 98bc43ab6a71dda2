"""One sequence of a chat answer while the engine works on it."""

from __future__ import annotations

from dataclasses import dataclass

from isogloss.dialects.chat_logprobs import ChatTokenLogprob, chat_logprob
from isogloss.dialects.due_tokens import DueTokens
from isogloss.engine.api import Delta, Finish


@dataclass(frozen=True, slots=True)
class ChatPiece:
    """What came new in one sequence."""

    text: str
    logprobs: list[ChatTokenLogprob] | None
    """None if the call does not want any."""
    finish: Finish | None
    """Set in the last piece."""


class ChatSequence:
    """Takes in deltas, and gives out what is new since it was last asked."""

    __slots__ = ("_alternatives", "_finish", "_parts", "_shown", "_taken", "_waiting", "index", "logprob", "tokens")

    def __init__(self, index: int, alternatives: int | None) -> None:
        """`alternatives` is how many to show per token; None shows no log probabilities."""
        self.index = index
        self.tokens = 0
        """Tokens so far."""
        self.logprob = 0.0
        """Cumulative log probability of the tokens so far, where the engine reports scores."""
        self._alternatives = alternatives
        self._finish: Finish | None = None
        self._parts: list[str] = []
        self._taken = 0
        """Parts that were given out."""
        self._shown = 0
        """Characters so far."""
        self._waiting = DueTokens()

    @property
    def text(self) -> str:
        """The whole text so far."""
        return "".join(self._parts)

    def add(self, delta: Delta) -> None:
        """Take in what one step of the engine added."""
        self._parts.append(delta.text)
        self._shown += len(delta.text)
        self._finish = delta.finish
        self.tokens += len(delta.token_ids)
        self.logprob += sum(score.chosen.logprob for score in delta.scores)
        if self._alternatives is not None:
            self._waiting.add(delta.scores)

    def take(self) -> ChatPiece:
        """What is new since the last time, which may be nothing."""
        text = "".join(self._parts[self._taken :])
        self._taken = len(self._parts)
        return ChatPiece(text, self._due(), self._finish)

    def _due(self) -> list[ChatTokenLogprob] | None:
        alternatives = self._alternatives
        if alternatives is None:
            return None
        due = self._waiting.take(self._shown, last=self._finish is not None)
        return [chat_logprob(token, alternatives) for token in due]
