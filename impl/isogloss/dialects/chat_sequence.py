"""One sequence of a chat answer while the engine works on it."""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass, field
from typing import Literal

from isogloss.dialects.chat_logprobs import ChatTokenLogprob, chat_logprob
from isogloss.dialects.due_tokens import DueTokens
from isogloss.engine.api import Delta, Finish
from isogloss.engine.chat import AnswerParser, CallArguments, CallStarted, Content, Piece, Reasoning

FinishReason = Literal["stop", "length", "tool_calls"]

_ID_CHARACTERS = string.ascii_letters + string.digits
_ID_LENGTH = 8


@dataclass(slots=True)
class CallPart:
    """What came new of one call."""

    index: int
    id: str | None = None
    """Set in the call's first part, like the name."""
    name: str | None = None
    texts: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """New text of the arguments."""
        return "".join(self.texts)


@dataclass(frozen=True, slots=True)
class ChatPiece:
    """What came new in one sequence."""

    text: str
    reasoning: str
    calls: list[CallPart]
    """One for each call of which something came."""
    logprobs: list[ChatTokenLogprob] | None
    """None if the call does not want any."""
    finish: Finish | None
    """Set in the last piece."""


class ChatSequence:
    """Takes in deltas, takes their text apart, and gives out what is new since it was last asked."""

    def __init__(
        self, index: int, alternatives: int | None, parser: AnswerParser, *, include_stop: bool = False
    ) -> None:
        """`alternatives` is how many to show per token; None shows no log probabilities.

        `include_stop` says whether the engine leaves a stop text that matched in the text.
        """
        self.index = index
        self.tokens = 0
        """Tokens so far."""
        self.reasoning_tokens = 0
        """Tokens up to the step in which the thought ended, those of the marks around it included."""
        self.logprob = 0.0
        """Cumulative log probability of the tokens so far, where the engine reports scores."""
        self._alternatives = alternatives
        self._parser = parser
        self._include_stop = include_stop
        self._finish: Finish | None = None
        self._content: list[str] = []
        self._taken = 0
        """Parts of the content that were given out."""
        self._reasoning: list[str] = []
        self._calls: dict[int, CallPart] = {}
        """What was not given out yet."""
        self._called = False
        self._shown = 0
        """Characters so far, of text of any kind."""
        self._waiting = DueTokens()

    @property
    def text(self) -> str:
        """The whole content so far."""
        return "".join(self._content)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Calls are the reason only where the answer ended by itself."""
        if self._finish is None:
            return None
        return "tool_calls" if self._called and self._finish.reason == "stop" else self._finish.reason

    def add(self, delta: Delta) -> None:
        """Take in what one step of the engine added."""
        self._finish = delta.finish
        self.tokens += len(delta.token_ids)
        self.logprob += sum(score.chosen.logprob for score in delta.scores)
        self._read(delta.text)
        if delta.finish is not None:
            self._end(delta.finish)
        if self._alternatives is not None:
            self._waiting.add(delta.scores)

    def take(self) -> ChatPiece:
        """What is new since the last time, which may be nothing."""
        text = "".join(self._content[self._taken :])
        self._taken = len(self._content)
        reasoning, self._reasoning = "".join(self._reasoning), []
        calls, self._calls = [*self._calls.values()], {}
        return ChatPiece(text, reasoning, calls, self._due(), self._finish)

    def _read(self, text: str) -> None:
        thought = self._parser.thinking
        self._shown += len(text)
        pieces = self._parser.push(text)
        for piece in pieces:
            self._keep(piece)
        if thought or self._parser.thinking or any(isinstance(piece, Reasoning) for piece in pieces):
            self.reasoning_tokens = self.tokens

    def _end(self, finish: Finish) -> None:
        """A stop text that comes in a thought is a part of it, as far as the thought goes."""
        hidden = finish.stop if self._parser.thinking and not self._include_stop else None
        pieces: list[Piece] = []
        if isinstance(hidden, str):
            self._shown += len(hidden)
            pieces = self._parser.push(hidden)
        pieces += self._parser.end()
        for piece in pieces:
            if hidden is None or isinstance(piece, Reasoning):
                self._keep(piece)

    def _keep(self, piece: Piece) -> None:
        match piece:
            case Content(text):
                self._content.append(text)
            case Reasoning(text):
                self._reasoning.append(text)
            case CallStarted(index, name):
                self._called = True
                self._calls[index] = CallPart(index, _call_id(), name)
            case CallArguments(index, text):
                self._calls.setdefault(index, CallPart(index)).texts.append(text)

    def _due(self) -> list[ChatTokenLogprob] | None:
        alternatives = self._alternatives
        if alternatives is None:
            return None
        due = self._waiting.take(self._shown, last=self._finish is not None)
        return [chat_logprob(token, alternatives) for token in due]


def _call_id() -> str:
    return "call_" + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))
