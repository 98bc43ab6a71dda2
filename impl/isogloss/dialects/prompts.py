"""The shapes in which a completion takes prompts, and what the rules of stage `prompt` read about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from isogloss_api.runtime import Context, Measured

from isogloss.engine.api import Engine, ModelCard, Tokenizer

PromptShape = str | list[str] | list[int] | list[list[int]]
"""One text, several texts, one prompt as token ids, several prompts as token ids; no list is empty."""

_LONG_TEXT = 4096
"""Characters from which on tokenizing would keep other requests waiting."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, tokenized."""

    tokens: Sequence[int]
    text: str | None = None
    """As the client wrote it; None if it came as token ids."""


async def tokenize(
    shape: PromptShape, tokenizer: Tokenizer, *, add_special_tokens: bool = True, suffix: str | None = None
) -> list[Prompt]:
    """The prompts of a request, in order. Long texts are tokenized off the event loop.

    `add_special_tokens` and `suffix` count for texts only: token ids are taken as they are. With a suffix, each text
    becomes a prompt for what stands between it and the suffix, if the model can do that.
    """
    items = _items(shape)
    encode = _encoder(tokenizer, add_special_tokens, suffix)
    if sum(len(item) + len(suffix or "") for item in items if isinstance(item, str)) < _LONG_TEXT:
        return _tokenized(items, encode)
    return await asyncio.to_thread(_tokenized, items, encode)


def _encoder(tokenizer: Tokenizer, add_special_tokens: bool, suffix: str | None) -> Callable[[str], list[int]]:
    infill = tokenizer.infill
    if not suffix or infill is None:
        return partial(tokenizer.encode, add_special_tokens=add_special_tokens)
    return partial(infill.encode, after=suffix, add_special_tokens=add_special_tokens)


async def measured(
    shape: PromptShape, engine: Engine, *, add_special_tokens: bool = True, suffix: str | None = None
) -> Measured[list[Prompt]]:
    """The prompts of a request, tokenized, with the figures about them."""
    prompts = await tokenize(shape, engine.tokenizer, add_special_tokens=add_special_tokens, suffix=suffix)
    return Measured(measure(prompts, engine.card), prompts)


def measure(prompts: Sequence[Prompt], card: ModelCard) -> Context:
    """The figures about prompts and model that completions' rules read."""
    lengths = [len(prompt.tokens) for prompt in prompts]
    return {
        "prompts": len(prompts),
        "prompt_tokens_min": min(lengths),
        "prompt_tokens_max": max(lengths),
        "prompt_tokens_sum": sum(lengths),
        "max_token_id": max((max(prompt.tokens) for prompt in prompts if prompt.text is None), default=-1),
        "context_length": card.context_length,
        "vocab_size": card.vocab_size,
    }


def _items(shape: PromptShape) -> list[str] | list[list[int]]:
    if isinstance(shape, str):
        return [shape]
    if isinstance(shape[0], int):
        return [shape]
    return shape


def _tokenized(items: Sequence[str] | Sequence[list[int]], encode: Callable[[str], list[int]]) -> list[Prompt]:
    return [Prompt(encode(item), item) if isinstance(item, str) else Prompt(item) for item in items]
