"""A tokenizer's tokens, in a form that can be sent to another process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llguidance import LLTokenizer, TokenizerWrapper

BLANKS = b" \t\n\r"
"""What JSON counts as whitespace."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens by id: either as the `tokenizer.json` of the tokenizers library, or as bytes."""

    size: int
    """Ids run from 0 to this minus 1; ids without a token are never allowed."""
    eos: tuple[int, ...]
    tokenizer_json: str | None = None
    tokens: tuple[bytes, ...] = ()
    special: tuple[int, ...] = ()
    """Ids in `tokens` that stand for no text."""

    def tokenizer(self) -> LLTokenizer:
        """The same as llguidance wants it. Takes half a second for 50,000 tokens.

        Raises ValueError for a tokenizer that llguidance does not know.
        """
        source: str | TokenizerWrapper
        source = TokenizerWrapper(_Tokens(self)) if self.tokenizer_json is None else self.tokenizer_json
        return LLTokenizer(source, n_vocab=self.size, eos_token=list(self.eos))


class _Tokens:
    """What TokenizerWrapper asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos[0]
        self.tokens: Sequence[bytes] = vocabulary.tokens
        self.special_token_ids: Sequence[int] = vocabulary.special
        self._bytes = {token: i for i, token in enumerate(vocabulary.tokens) if len(token) == 1}

    def __call__(self, text: str | bytes) -> list[int]:
        """Tokens of a text, byte by byte."""
        data = text.encode() if isinstance(text, str) else text
        return [self._bytes[data[i : i + 1]] for i in range(len(data))]
