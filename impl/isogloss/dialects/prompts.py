"""The shapes in which a completion takes prompts, and what the rules of stage `prompt` read about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from isogloss_api.runtime import Context, Measured

from isogloss.engine.api import Engine, ModelCard, Tokenizer

PromptShape = str | list[str] | list[int] | list[list[int]]
"""One text, several texts, one prompt as token ids, several prompts as token ids; no list is empty."""

_LONG_TEXT = 4096
"""Characters from which on tokenizing would keep other requests waiting."""
_PIECE = 16_384
"""Characters of a text that are counted at once, to see early that it has too many tokens."""
_CHARS_OF_A_TOKEN = 4
"""Texts of up to this many characters for each token that the model takes are tokenized without a count before."""
_LOST_AT_A_CUT = 8
"""Tokens by which a text may have fewer than its pieces, per cut: a word that was cut in two may be one token."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, tokenized."""

    tokens: Sequence[int]
    text: str | None = None
    """As the client wrote it; None if it came as token ids."""
    at_least: int = 0
    """Tokens that a text has at least, if that is more than the model takes. It has no `tokens` then: its rules
    refuse it."""

    @property
    def length(self) -> int:
        """Number of tokens, or what is known of it."""
        return self.at_least or len(self.tokens)


def at_least(texts: Iterable[str], tokenizer: Tokenizer, limit: int) -> int:
    """Tokens that these texts have at least, if that is more than `limit`; else 0.

    Counts piece by piece, and no further than it must: a text of many times the limit costs no more than one of it.
    """
    count = 0
    for text in texts:
        for start in range(0, len(text), _PIECE):
            piece = tokenizer.encode(text[start : start + _PIECE], add_special_tokens=False)
            count += max(0, len(piece) - _LOST_AT_A_CUT)
            if count > limit:
                return count
    return 0


async def tokenize(
    shape: PromptShape,
    engine: Engine,
    *,
    add_special_tokens: bool = True,
    suffix: str | None = None,
) -> list[Prompt]:
    """The prompts of a request, in order. Long texts are tokenized off the event loop.

    `add_special_tokens` and `suffix` count for texts only: token ids are taken as they are. With a suffix, each text
    becomes a prompt for what stands between it and the suffix, if the model can do that.
    """
    items: Sequence[str | list[int]] = _items(shape)
    tokenizer, limit = engine.tokenizer, engine.card.context_length
    encode = _encoder(tokenizer, add_special_tokens, suffix)
    if sum(len(item) + len(suffix or "") for item in items if isinstance(item, str)) < _LONG_TEXT:
        return [_tokenized(item, encode) for item in items]

    def work() -> list[Prompt]:
        return [_bounded(item, encode, tokenizer, limit) for item in items]

    return await asyncio.to_thread(work)


def _encoder(tokenizer: Tokenizer, add_special_tokens: bool, suffix: str | None) -> Callable[[str], list[int]]:
    infill = tokenizer.infill
    if not suffix or infill is None:
        return partial(tokenizer.encode, add_special_tokens=add_special_tokens)
    return partial(infill.encode, after=suffix, add_special_tokens=add_special_tokens)


async def measured(
    shape: PromptShape, engine: Engine, *, add_special_tokens: bool = True, suffix: str | None = None
) -> Measured[list[Prompt]]:
    """The prompts of a request, tokenized, with the figures about them."""
    prompts = await tokenize(shape, engine, add_special_tokens=add_special_tokens, suffix=suffix)
    return Measured(measure(prompts, engine.card), prompts)


def measure(prompts: Sequence[Prompt], card: ModelCard) -> Context:
    """The figures about prompts and model that completions' rules read."""
    lengths = [prompt.length for prompt in prompts]
    return {
        "prompts": len(prompts),
        "prompt_tokens_min": min(lengths),
        "prompt_tokens_max": max(lengths),
        "prompt_tokens_sum": sum(lengths),
        "max_token_id": max((max(prompt.tokens) for prompt in prompts if prompt.text is None), default=-1),
        "context_length": card.context_length,
        "vocab_size": card.vocab_size,
    }


def _items(shape: PromptShape) -> Sequence[str | list[int]]:
    if isinstance(shape, str):
        return [shape]
    if isinstance(shape[0], int):
        return [shape]
    return shape


def _bounded(item: str | list[int], encode: Callable[[str], list[int]], tokenizer: Tokenizer, limit: int) -> Prompt:
    """A prompt, tokenized unless it is a text of clearly too many tokens."""
    if isinstance(item, str) and len(item) > _CHARS_OF_A_TOKEN * limit:
        count = at_least([item], tokenizer, limit)
        if count:
            return Prompt((), item, count)
    return _tokenized(item, encode)


def _tokenized(item: str | list[int], encode: Callable[[str], list[int]]) -> Prompt:
    return Prompt(encode(item), item) if isinstance(item, str) else Prompt(item)
