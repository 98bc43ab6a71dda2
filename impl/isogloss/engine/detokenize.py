"""Incremental decoding over any tokenizer that can decode a list of ids.

Tokenizers decode in context: a leading space is dropped at the start only, bytes make a character
together. So each new token is decoded behind a short window of tokens, and the text that the window
did not have yet is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

DecodeIds = Callable[[Sequence[int]], str]

_CONTEXT = 8
_LONGEST_CHARACTER = 8
"""Tokens that may make one character: 4 bytes, and room for tokens without text between."""
_WINDOW = 16
_HOPELESS = 64
"""Tokens without any text that are kept, as they might still become some."""


class WindowDecoder:
    """The text of tokens that follow a prompt, a token at a time.

    All pieces together equal `decode(prompt + tokens)` without `decode(prompt)`, if the prompt ends
    with a whole character. Bytes that never become a character may show as another number of U+FFFD
    where the tokenizer's own decoding of them depends on what comes later (SentencePiece's byte
    fallback replaces a whole run of bytes, also the good ones in it).
    """

    __slots__ = ("_decode", "_ids", "_sent", "_whole")

    def __init__(self, decode: DecodeIds, prompt: Sequence[int]) -> None:
        self._decode = decode
        self._ids = _context(decode, prompt)
        self._sent = decode(self._ids)
        """The text of `_ids` that has been given out, or belongs to the prompt."""
        self._whole = len(self._ids)
        """How many of `_ids` make whole characters."""

    def push(self, token_id: int) -> str:
        """The text that is certain after this token; "" while a character is incomplete."""
        self._ids.append(token_id)
        text = self._decode(self._ids)
        if text.endswith(REPLACEMENT) and len(self._ids) - self._whole < _HOPELESS:
            return self._uncertain(text)
        new = self._new(text)
        self._settle(text, changed=bool(new))
        return new

    def flush(self) -> str:
        """What is left at the end; incomplete bytes become U+FFFD."""
        text = self._decode(self._ids)
        new = self._new(text)
        self._sent = text
        return new

    def _uncertain(self, text: str) -> str:
        """Once there are too many bytes for one character, only the last U+FFFD may still change."""
        if len(self._ids) - self._whole <= _LONGEST_CHARACTER:
            return ""
        certain = text[:-1]
        new = self._new(certain)
        self._sent = certain
        return new

    def _new(self, text: str) -> str:
        if text.startswith(self._sent):
            return text[len(self._sent) :]
        return self._decode(self._ids[self._whole :])

    def _settle(self, text: str, *, changed: bool) -> None:
        self._sent = text
        if not changed:
            if len(self._ids) - self._whole > _HOPELESS:
                self._ids.pop()
            return
        if len(self._ids) > _WINDOW:
            # Cut between characters only: half a character would spoil what is decoded with it.
            del self._ids[: self._whole]
            self._sent = self._decode(self._ids)
        self._whole = len(self._ids)


def _context(decode: DecodeIds, prompt: Sequence[int]) -> list[int]:
    """The last tokens of a prompt that have text and begin with a whole character."""
    for size in range(_CONTEXT, 4 * _CONTEXT):
        context = list(prompt[-size:])
        text = decode(context)
        if size >= len(prompt) or (text and REPLACEMENT not in text):
            return context
    return list(prompt[-_CONTEXT:])
