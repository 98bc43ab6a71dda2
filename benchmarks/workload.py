"""The same work for every engine: prompts of equal length that share no prefix, decoded greedily to equal length."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random

Prompts = Sequence[list[int]]

_ORDINARY_TOKENS = range(1000, 40000)
"""Ids of the embedded model's vocabulary that are neither bytes nor special tokens."""


@dataclass(frozen=True, slots=True)
class Work:
    """What each engine is asked for at one concurrency."""

    prompt_tokens: int = 64
    new_tokens: int = 128

    def prompts(self, count: int, seed: int) -> list[list[int]]:
        """Prompts as token ids; another seed gives others, so that no round finds the last one's KV cache."""
        random = Random(seed)
        return [random.choices(_ORDINARY_TOKENS, k=self.prompt_tokens) for _ in range(count)]


@dataclass(frozen=True, slots=True)
class Pace:
    """How one batch of prompts went."""

    tokens: int
    seconds: float
    first_s: list[float]
    """Per prompt, from its request to its first token; empty where that can't be seen."""

    @property
    def tokens_per_second(self) -> float:
        """New tokens of all prompts together."""
        return self.tokens / self.seconds


Candidate = Callable[[Prompts], Awaitable[Pace]]
"""Runs all prompts at once."""
