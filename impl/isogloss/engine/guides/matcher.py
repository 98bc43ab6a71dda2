"""Following a compiled guide, token by token."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from isogloss.engine.api import Guide
from isogloss.engine.guides.trial import allowed_ids
from isogloss.engine.guides.vocabulary import BLANKS, Vocabulary

Bits = NDArray[np.uint8]
"""One bit per token id, lowest bit first, shape `(ceil(vocabulary / 8),)`."""

_BLANK_RUN = 24
"""Blanks in a row after which a JSON text goes on with something else, if it can."""
_SLOWEST = 0.3
"""Seconds of computing for one mask, after which the request is given up: every other one waits for it."""


class Tokens:
    """What matchers need to know of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.size = vocabulary.size
        self.eos = frozenset(vocabulary.eos)
        self.tokenizer: LLTokenizer = vocabulary.tokenizer()
        texts = (self.text(i) for i in range(self.size))
        self.blank = self.bits([i for i, text in enumerate(texts) if text and not text.strip(BLANKS)])

    def text(self, token: int) -> bytes:
        """The bytes of one token."""
        return self.tokenizer.decode_bytes([token])

    def bits(self, ids: Collection[int]) -> Bits:
        """The set of these ids; those outside the vocabulary are left out."""
        flags = np.zeros(self.size, dtype=np.uint8)
        flags[[i for i in ids if 0 <= i < self.size]] = 1
        return np.packbits(flags, bitorder="little")


class GuideMatcher:
    """Which tokens may come next in one choice. Not to be shared between threads."""

    __slots__ = ("_avoided", "_json", "_matcher", "_run", "_tokens", "complete", "failed", "yields_to")

    def __init__(
        self, matcher: LLMatcher, tokens: Tokens, *, json: bool, yields: bool = False, avoided: Collection[int] = ()
    ) -> None:
        self._matcher = matcher
        self._tokens = tokens
        self._json = json
        self._avoided = avoided
        self.yields_to = tokens.eos if yields else frozenset()
        """Tokens that take, where they are allowed, the probability of those that are not."""
        self._run = 0
        """Blanks at the end of the text so far."""
        self.complete = False
        """Whether the text is whole and nothing can follow."""
        self.failed = False
        """Whether the guide turned out to be too much work."""

    def allowed(self, banned: Collection[int] = ()) -> Bits:
        """Tokens that may come next; no bit is set once the matcher has failed.

        End of text is among them where the text may end. Banned tokens are left out if others remain.
        """
        begun = time.thread_time()
        mask = self._matcher.compute_bitmask()
        if time.thread_time() - begun > _SLOWEST or self._matcher.is_error():
            self.failed = True
        bits = np.frombuffer(mask, np.uint8)[: (self._tokens.size + 7) // 8]
        if self.failed:
            return np.zeros_like(bits)
        if self._json and self._run >= _BLANK_RUN:
            bits = _without(bits, self._tokens.blank)
        unwanted = (*banned, *self._avoided)
        return _without(bits, self._tokens.bits(unwanted)) if unwanted else bits

    def accept(self, token: int) -> None:
        """Tell which token came; it must have been allowed."""
        if token in self._tokens.eos:
            self.complete = True
            return
        self.accept_all([token])

    def accept_all(self, tokens: Sequence[int]) -> None:
        """Tell which tokens came; none of them ends the text."""
        self._matcher.consume_tokens(list(tokens))
        self.failed = self.failed or self._matcher.is_error()
        self.complete = self._matcher.is_stopped() and not self.failed
        for token in tokens:
            self._count_blanks(self._tokens.text(token))

    def permits(self, tokens: Sequence[int]) -> bool:
        """Whether these tokens may come next, one after the other. None of them ends the text."""
        first = tokens[0] if tokens else 0
        if tokens and not self.allowed()[first // 8] >> first % 8 & 1:
            return False
        return len(tokens) < 2 or self._matcher.validate_tokens(list(tokens)) == len(tokens)

    def allowed_after(self, tokens: Sequence[int]) -> Bits | None:
        """Tokens that may come behind these; None if these may not come themselves. Nothing changes by asking."""
        ahead = self._matcher.deep_copy()
        if not ahead.consume_tokens(list(tokens)):
            return None
        return np.frombuffer(ahead.compute_bitmask(), np.uint8)[: (self._tokens.size + 7) // 8]

    def finished(self) -> bool:
        """Whether the text is whole and nothing but its end can follow, looked at closely."""
        if self.complete:
            return True
        ids = allowed_ids(self.allowed().tobytes(), self._tokens.size).tolist()
        return bool(ids) and self._tokens.eos.issuperset(ids)

    def may_end(self) -> bool:
        """Whether the text so far is whole."""
        return self.complete or (not self.failed and self._matcher.is_accepting())

    def _count_blanks(self, text: bytes) -> None:
        solid = text.rstrip(BLANKS)
        self._run = len(text) - len(solid) if solid else self._run + len(text)


def _without(bits: Bits, unwanted: Bits) -> Bits:
    rest = bits & ~unwanted
    return rest if rest.any() else bits


@dataclass(frozen=True, slots=True)
class ReadyGuide(Guide):
    """A guide that has been compiled. It takes the plain one's place in a request on its way to the token source."""

    # Compared by what it says, not by how it was compiled.
    start: LLMatcher | None = field(default=None, compare=False, repr=False)
    """Has seen no token."""
    tokens: Tokens | None = field(default=None, compare=False, repr=False)

    def matcher(self, avoided: Collection[int] = ()) -> GuideMatcher:
        """For one choice, at its start. Avoided tokens only come where nothing else can."""
        assert self.start is not None
        assert self.tokens is not None
        json = any(guide.kind in ("json_schema", "json_object") for guide in (self, *self.parts))
        return GuideMatcher(self.start.deep_copy(), self.tokens, json=json, yields=self.yields, avoided=avoided)


def matcher_of(guide: Guide | None, avoided: Collection[int] = ()) -> GuideMatcher | None:
    """A matcher for one choice of a request whose guide has been compiled."""
    if guide is None:
        return None
    assert isinstance(guide, ReadyGuide)
    return guide.matcher(avoided)
