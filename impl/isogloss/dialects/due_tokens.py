"""Generated tokens that wait until their text has been shown, since a stop string may still cut it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from isogloss.engine.api import TokenScore


@dataclass(frozen=True, slots=True)
class DueToken:
    """A token with the part of its choice's text that is its own."""

    score: TokenScore
    text: str
    """ "" for a token that added none, such as part of a character, and for one behind the cut of a stop string."""
    offset: int
    """Where that text begins in the choice's text, in characters."""


class DueTokens:
    """The tokens of one choice; those whose text lies within what is shown are due."""

    __slots__ = ("_offset", "_waiting")

    def __init__(self, offset: int = 0) -> None:
        self._offset = offset
        self._waiting: deque[TokenScore] = deque()

    def add(self, scores: Iterable[TokenScore]) -> None:
        """Take in the scores of new tokens."""
        self._waiting.extend(scores)

    def take(self, shown: int, *, last: bool) -> Iterator[DueToken]:
        """Tokens whose text lies within the first `shown` characters; at last all of them, the text cut there."""
        while self._waiting:
            score = self._waiting[0]
            text = score.chosen.text if score.text is None else score.text
            if self._offset + len(text) > shown:
                if not last:
                    return
                text = text[: shown - self._offset]
            self._waiting.popleft()
            yield DueToken(score, text, self._offset)
            self._offset += len(text)
