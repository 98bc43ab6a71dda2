"""The shapes in which a completion takes prompts, and what the rules of stage `prompt` read about them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

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


async def tokenize(shape: PromptShape, tokenizer: Tokenizer, *, add_special_tokens: bool = True) -> list[Prompt]:
    """The prompts of a request, in order. Long texts are tokenized off the event loop.

    `add_special_tokens` counts for texts only: token ids are taken as they are.
    """
    items = _items(shape)
    if sum(len(item) for item in items if isinstance(item, str)) < _LONG_TEXT:
        return _tokenized(items, tokenizer, add_special_tokens)
    return await asyncio.to_thread(_tokenized, items, tokenizer, add_special_tokens)


async def measured(shape: PromptShape, engine: Engine, *, add_special_tokens: bool = True) -> Measured[list[Prompt]]:
    """The prompts of a request, tokenized, with the figures about them."""
    prompts = await tokenize(shape, engine.tokenizer, add_special_tokens=add_special_tokens)
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


def _tokenized(
    items: Sequence[str] | Sequence[list[int]], tokenizer: Tokenizer, add_special_tokens: bool
) -> list[Prompt]:
    return [
        Prompt(tokenizer.encode(item, add_special_tokens=add_special_tokens), item)
        if isinstance(item, str)
        else Prompt(item)
        for item in items
    ]
