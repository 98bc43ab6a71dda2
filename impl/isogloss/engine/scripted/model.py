"""A tiny language model: tables of logits over the vocabulary, picked by the tokens so far.

It knows no language, but it has what a model has: a distribution that depends on all tokens before,
that favours words, and that ends a text now and then. So scores, ranks, biases and penalties work as
they do with a real one.
"""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.media import MediaInput
from isogloss.engine.scripted.vocabulary import BEHIND_WORDS, END, FIRST_WORD, VOCAB_SIZE
from isogloss.engine.tokens import RawScore

Logits = NDArray[np.float64]

_ROW_BITS = 6
_ROWS = 1 << _ROW_BITS
_UNLIKELY = -60.0
_END_LOGIT = 2.0
_FORCED = 0.9
"""The share of the probability that a token dictated by a script gets."""


class TinyModel:
    """The tables. A state is a hash of all tokens so far; it picks the row."""

    def __init__(self) -> None:
        self.logits = _make_logits()
        peak = self.logits.max(axis=1, keepdims=True)
        total = np.log(np.exp(self.logits - peak).sum(axis=1, keepdims=True))
        self._logprobs = self.logits - peak - total
        self._order = np.argsort(-self.logits, axis=1, kind="stable")
        self._best = np.take_along_axis(self._logprobs, self._order, axis=1)
        self._ranks = np.argsort(self._order, axis=1) + 1
        self._favourites: list[int] = self._order[:, 0].tolist()

    def state(self, tokens: Iterable[int], state: int = 0) -> int:
        """The state after some more tokens."""
        return zlib.crc32(array("H", tokens), state)

    def row(self, state: int) -> Logits:
        """Logits of the next token, shape `(VOCAB_SIZE,)`; not to be written to."""
        row: Logits = self.logits[_row_of(state)]
        return row

    def favourite(self, state: int) -> int:
        """The most likely next token."""
        return self._favourites[_row_of(state)]

    def tops(self, states: Sequence[int], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `count` most likely next tokens of each state and their log probabilities, shape (states, count)."""
        rows = [_row_of(state) for state in states]
        return self._order[rows, :count], self._best[rows, :count]

    def score(self, state: int, token: int, top: int) -> RawScore:
        """The score of a token, and of the `top` most likely ones."""
        row = _row_of(state)
        return RawScore(float(self._logprobs[row, token]), int(self._ranks[row, token]), self._top(row, top))

    def forced_score(self, state: int, token: int, top: int) -> RawScore:
        """The same if the model were all but sure of the token."""
        row = _row_of(state)
        chosen = math.log(_FORCED + (1 - _FORCED) * math.exp(self._logprobs[row, token]))
        others = math.log(1 - _FORCED)
        ranked = [(token, chosen)]
        ranked += [(i, logprob + others) for i, logprob in self._top(row, top) if i != token]
        return RawScore(chosen, 1, tuple(ranked[:top]))

    def prompt_scores(self, prompt: Sequence[int], top: int, begin: int = 0) -> tuple[RawScore | None, ...]:
        """A score for each token of a prompt that begins at a state, None for the first."""
        scores: list[RawScore | None] = [None]
        state = self.state(prompt[:1], begin)
        for token in prompt[1:]:
            scores.append(self.score(state, token, top))
            state = self.state((token,), state)
        return tuple(scores)

    def _top(self, row: int, count: int) -> tuple[tuple[int, float], ...]:
        ids, logprobs = self._order[row, :count], self._best[row, :count]
        return tuple(zip(ids.tolist(), logprobs.tolist(), strict=True))


def first_state(media: MediaInput | None) -> int:
    """The state before a prompt with these media."""
    return 0 if media is None else zlib.crc32(b"".join(media.digests))


def _row_of(state: int) -> int:
    # Multiplied first: the upper bits of a checksum alone change little with the last token.
    return (state * 2654435761 & 0xFFFFFFFF) >> (32 - _ROW_BITS)


@cache
def tiny_model() -> TinyModel:
    """The one model; its tables take 4 MB."""
    return TinyModel()


def _make_logits() -> Logits:
    random = np.random.default_rng(1)
    logits: Logits = random.normal(_UNLIKELY, 1.0, (_ROWS, VOCAB_SIZE))
    spoken = [*b",.;:?!\n", *range(FIRST_WORD, BEHIND_WORDS)]
    logits[:, spoken] = random.normal(0.0, 1.6, (_ROWS, len(spoken)))
    logits[:, END] = _END_LOGIT
    return logits
