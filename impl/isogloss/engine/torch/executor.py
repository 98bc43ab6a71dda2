"""The seam between the scheduler and whatever computes the model.

Everything above it (scheduler, blocks, sampler) is neutral to device and model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from isogloss.engine.media import Media

NULL_BLOCK = 0
"""A block that no sequence owns. Executors may read it as padding, so it must stay finite."""


class UnsupportedModelError(Exception):
    """The executor cannot compute this model right. The text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """What is computed in place of some tokens of a span: a part of a medium."""

    row: int
    """Index, within the span, of the first of these tokens."""
    values: torch.Tensor
    """[tokens, hidden size]."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Consecutive tokens of one sequence, to be computed in one step.

    What a request does to the model beside its tokens belongs here, so that one step can mix
    requests: an adapter's name, input embeddings in place of tokens, values to read from or add to
    the residual stream. Each is a property of a span, and default values must cost nothing.
    """

    tokens: Sequence[int]
    start: int
    """Absolute position of the first token; all positions before it are in the cache."""
    table: Sequence[int]
    """Blocks of the sequence: position p lies in `table[p // block_size]`. Covers the span."""
    wanted: int = 1
    """How many rows, counted from the last, need logits: 0 for none, `len(tokens)` for all."""
    adapter: str | None = None
    """Name of the adapter to compute with; None is the model alone."""
    embedded: Sequence[Embedded] = ()
    """Parts of media in place of tokens, which then stand for nothing."""
    positions: torch.Tensor | None = None
    """Rotary positions [3, tokens] where a model counts time, height and width apart; None counts on from `start`."""
    shift: int = 0
    """Added to the positions where they are counted on."""


class Executor(Protocol):
    """Computes logits over a paged KV cache that it owns. Used by one thread at a time."""

    @property
    def vocab_size(self) -> int:
        """Width of a row of logits."""
        ...

    @property
    def block_size(self) -> int:
        """Positions in a block."""
        ...

    @property
    def block_count(self) -> int:
        """Blocks in the cache, `NULL_BLOCK` included."""
        ...

    def forward(self, spans: Sequence[Span]) -> torch.Tensor:
        """Compute all spans and store their keys and values.

        Returns float32 logits [wanted rows, vocabulary], spans in order, rows in order of
        position. No row depends on another span. A span reads what earlier calls stored, never
        what the same call stores for another span.
        """
        ...

    def encode(self, medium: Media) -> torch.Tensor:
        """What takes the place of a medium's tokens, [tokens, hidden size]: for `Span.embedded`."""
        ...

    def copy_block(self, source: int, target: int) -> None:
        """Copy keys and values of one block over another."""
        ...

    def clear_blocks(self, blocks: Sequence[int]) -> None:
        """Zero blocks that may hold values that are not finite: these would reach the next owner
        through positions that are masked (0 times NaN is NaN)."""
        ...
