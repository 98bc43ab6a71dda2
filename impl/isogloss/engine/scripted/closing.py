"""The wish of a guided text to come to an end.

The tiny model hardly ever writes a quote or a bracket by itself, so without it a JSON text would go on for ever.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.guides.matcher import GuideMatcher
from isogloss.engine.scripted.model import Logits
from isogloss.engine.scripted.vocabulary import BEHIND_WORDS, END, FIRST_PHRASE, FIRST_WORD, PHRASES, VOCAB_SIZE

Allowed = NDArray[np.bool_]
"""Which tokens a guide allows, shape `(VOCAB_SIZE,)`."""

_ENDINGS = (b'"', b"'", b"</think>", b"\n</parameter>\n")
"""What may end a free text: a string in JSON or in Python, a thought, a value between tags."""
_BRACKETS = (*b"\"}])'<",)
_BLANKS = (*b" \n\r\t",)
_LIFT = 60.0
"""Makes a token that closes something about as likely as a word."""
_SURE = 1000.0
"""Stands above all that may come too."""
_GROWTH = 1.0
"""By which that grows with every token that the model was free to choose."""


class Closing:
    """Raises what closes a text's parts, or ends it, the more the longer the text has been."""

    __slots__ = ("_ending", "_free", "_written")

    def __init__(self) -> None:
        self._free = 0
        """Tokens that the guide has left open so far."""
        self._ending: bytes | None = None
        """What ends the free text that goes on now; empty if nothing is known to, None outside of such texts."""
        self._written = 0
        """How much of that has come."""

    def raised(self, logits: Logits, allowed: Allowed, guide: GuideMatcher) -> Logits:
        """The logits of the next token, given those that the guide allows; counts it."""
        if np.count_nonzero(allowed) == 1:
            return logits
        raised = logits.copy()
        wish = _LIFT + _GROWTH * self._free
        self._free += 1
        if allowed[END]:
            raised[END] += wish - _LIFT
        elif _speaks(allowed):
            self._end(raised, wish, guide)
        else:
            self._ending = None
            raised[[*_BLANKS]] -= 2 * _LIFT
            raised[[*_BRACKETS]] += wish
        return raised

    def took(self, token: int) -> None:
        """Tell which token followed."""
        comes = self._ending and token == self._ending[self._written]
        self._written = self._written + 1 if comes else 0
        if self._ending is not None and self._written == len(self._ending):
            self._ending = None

    def _end(self, raised: Logits, wish: float, guide: GuideMatcher) -> None:
        if self._ending is None:
            self._ending, self._written = _ending(guide), 0
        if self._ending:
            raised[self._ending[self._written]] += _SURE if self._written else wish


def _ending(guide: GuideMatcher) -> bytes:
    """What would end the free text that begins here; empty if nothing does."""
    for ending in _ENDINGS:
        bits = guide.allowed_after([*ending])
        if bits is not None and not _speaks(unpacked(bits)):
            return ending
    return b""


def unpacked(bits: NDArray[np.uint8]) -> Allowed:
    """A guide's bits as truth values."""
    return np.unpackbits(bits, count=VOCAB_SIZE, bitorder="little").astype(bool)


def forced_phrase(allowed: Allowed, guide: GuideMatcher) -> int | None:
    """The phrase that must follow, if one must. The library itself allows of forced text one byte at a time."""
    if np.count_nonzero(allowed) > 1:
        return None
    byte = int(allowed.argmax())
    fitting = (token for token, phrase in enumerate(PHRASES, FIRST_PHRASE) if phrase[0] == byte)
    return next((token for token in fitting if guide.allowed_after([token]) is not None), None)


def _speaks(allowed: Allowed) -> bool:
    """Whether the next token may be a word of a free text."""
    return bool(allowed[FIRST_WORD:BEHIND_WORDS].any())
