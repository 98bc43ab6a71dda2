"""Attention over a paged KV cache, as an attention function that transformers models call.

The batch is flat, [1, rows]: prefill chunks and decode rows of many sequences side by side. What
each row may see travels in a context variable, because not every model family hands unknown
keyword arguments down to its attention layers.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from isogloss.engine.torch.executor import NULL_BLOCK, Span

IMPLEMENTATION = "isogloss_paged"


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """What one attention layer asks for. Tensors are [rows, heads, head size]."""

    module: Any
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    scaling: float | None
    options: dict[str, Any]


class AttentionBatch(Protocol):
    """Answers the attention calls of one forward pass."""

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Attention of one layer, [rows, heads, value size]."""
        ...


current_batch: ContextVar[AttentionBatch] = ContextVar("current_batch")


def paged_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Called by each attention layer with [1, heads, rows, head size]."""
    out = current_batch.get().attend(AttentionCall(module, _rows(query), _rows(key), _rows(value), scaling, options))
    return out[None], None


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[0].transpose(0, 1)


# No mask function goes with it: transformers then makes no mask at all.
AttentionInterface.register(IMPLEMENTATION, paged_attention)


@dataclass(frozen=True, slots=True)
class KVShape:
    """Heads and their sizes in one layer."""

    heads: int
    key_size: int
    value_size: int

    @property
    def elements(self) -> int:
        """Numbers to store per position."""
        return self.heads * (self.key_size + self.value_size)


class PagedKV:
    """Keys and values of all layers, [block, position in block, head, head size] each."""

    def __init__(
        self,
        shapes: Sequence[KVShape],
        blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.block_size = block_size
        self.blocks = blocks
        self.keys = [_zeros((blocks, block_size, s.heads, s.key_size), dtype, device) for s in shapes]
        self.values = [_zeros((blocks, block_size, s.heads, s.value_size), dtype, device) for s in shapes]

    def copy(self, source: int, target: int) -> None:
        """Copy one block over another, in all layers."""
        for store in (*self.keys, *self.values):
            store[target] = store[source]

    def clear(self, blocks: Sequence[int]) -> None:
        """Zero blocks, in all layers."""
        for store in (*self.keys, *self.values):
            store[list(blocks)] = 0


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros, because memory that was left lying about may hold NaN.

    On a CPU they are pages that the system provides when they are first touched: a large cache
    costs no time and no memory before it is used.
    """
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    pages = mmap.mmap(-1, math.prod(shape) * dtype.itemsize)
    return torch.frombuffer(pages, dtype=dtype).view(shape)


@dataclass(frozen=True, slots=True)
class Pages:
    """Where the context of some sequences lies: one row of block numbers per sequence."""

    blocks: torch.Tensor
    """[sequences * columns], padded with the null block."""
    sequences: int

    def gather(self, store: torch.Tensor) -> torch.Tensor:
        """[sequences, heads, positions, size], a transposed view of the gathered blocks."""
        _, _, heads, size = store.shape
        flat = store.view(store.shape[0], -1).index_select(0, self.blocks)
        return flat.view(self.sequences, -1, heads, size).transpose(1, 2)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A prefill chunk: rows `first` to `last` (exclusive) of the batch."""

    first: int
    last: int
    pages: Pages | None
    """None for a chunk at position 0, which sees nothing but itself."""
    mask: torch.Tensor | None
    """[rows, positions], True where a row may look."""


@dataclass(frozen=True, slots=True)
class Decode:
    """All spans of one row, computed together."""

    rows: torch.Tensor | None
    """Their rows of the batch; None if they are the batch."""
    pages: Pages
    mask: torch.Tensor
    """[sequences, 1, 1, positions], added to the scores."""


class PagedBatch:
    """One step: where its rows are stored, and what they see."""

    __slots__ = ("_chunks", "_decode", "_kv", "_slots")

    def __init__(self, kv: PagedKV, slots: torch.Tensor, chunks: Sequence[Chunk], decode: Decode | None) -> None:
        self._kv = kv
        self._slots = slots
        self._chunks = chunks
        self._decode = decode

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Store keys and values, then let each row see its own sequence."""
        layer = call.module.layer_idx
        keys, values = self._kv.keys[layer], self._kv.values[layer]
        keys.view(-1, *keys.shape[2:]).index_copy_(0, self._slots, call.key)
        values.view(-1, *values.shape[2:]).index_copy_(0, self._slots, call.value)
        decode = self._decode
        if decode is not None and decode.rows is None:
            return _attend_decode(decode, call.query, keys, values, call.scaling)
        out = call.query.new_empty(*call.query.shape[:2], call.value.shape[-1])
        if decode is not None:
            query = call.query[decode.rows]
            out[decode.rows] = _attend_decode(decode, query, keys, values, call.scaling)
        for chunk in self._chunks:
            part = slice(chunk.first, chunk.last)
            seen = _seen_by(chunk, call, keys, values)
            out[part] = _attend_chunk(chunk, call.query[part], *seen, call.scaling)
        return out


def _seen_by(
    chunk: Chunk, call: AttentionCall, keys: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    if chunk.pages is not None:
        return chunk.pages.gather(keys), chunk.pages.gather(values)
    part = slice(chunk.first, chunk.last)
    return call.key[part].transpose(0, 1)[None], call.value[part].transpose(0, 1)[None]


def _attend_decode(
    decode: Decode,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float | None,
) -> torch.Tensor:
    rows, heads, size = query.shape
    kv_heads = keys.shape[2]
    # The query heads that share a KV head take the place of query positions, so that keys and
    # values need no repetition.
    out = scaled_dot_product_attention(
        query.reshape(rows, kv_heads, heads // kv_heads, size),
        decode.pages.gather(keys),
        decode.pages.gather(values),
        attn_mask=decode.mask,
        scale=scaling,
    )
    return out.reshape(rows, heads, -1)


def _attend_chunk(
    chunk: Chunk,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float | None,
) -> torch.Tensor:
    out = scaled_dot_product_attention(
        query.transpose(0, 1)[None],
        keys,
        values,
        attn_mask=chunk.mask,
        is_causal=chunk.mask is None,
        scale=scaling,
        enable_gqa=query.shape[1] != keys.shape[1],
    )
    return out[0].transpose(0, 1)


def plan_batch(kv: PagedKV, spans: Sequence[Span], dtype: torch.dtype) -> PagedBatch:
    """Lay out one step. Rows of the batch are the tokens of the spans, in order."""
    planner = _Planner(kv, dtype)
    for span in spans:
        planner.add(span)
    return planner.finish()


class _Planner:
    """Collects slots, chunks and decode rows span by span."""

    def __init__(self, kv: PagedKV, dtype: torch.dtype) -> None:
        self._kv = kv
        self._dtype = dtype
        self._device = kv.keys[0].device
        self._slots: list[int] = []
        self._chunks: list[Chunk] = []
        self._decode: list[tuple[int, Span]] = []

    def add(self, span: Span) -> None:
        size = self._kv.block_size
        first = len(self._slots)
        end = span.start + len(span.tokens)
        self._slots += [span.table[position // size] * size + position % size for position in range(span.start, end)]
        if len(span.tokens) == 1:
            self._decode.append((first, span))
        else:
            self._chunks.append(self._chunk(first, span, end))

    def _chunk(self, first: int, span: Span, end: int) -> Chunk:
        last = first + len(span.tokens)
        if span.start == 0:
            return Chunk(first, last, None, None)
        pages = self._pages([span.table[: -(-end // self._kv.block_size)]])
        positions = torch.arange(len(pages.blocks) * self._kv.block_size, device=self._device)
        own = torch.arange(span.start, end, device=self._device)
        return Chunk(first, last, pages, positions <= own[:, None])

    def _pages(self, tables: Sequence[Sequence[int]]) -> Pages:
        width = max(len(table) for table in tables)
        flat = [block for table in tables for block in (*table, *((NULL_BLOCK,) * (width - len(table))))]
        return Pages(torch.tensor(flat, device=self._device), len(tables))

    def _finish_decode(self) -> Decode | None:
        if not self._decode:
            return None
        size = self._kv.block_size
        pages = self._pages([s.table[: s.start // size + 1] for _, s in self._decode])
        width = len(pages.blocks) // pages.sequences * size
        own = torch.tensor([span.start for _, span in self._decode], device=self._device)
        hidden = torch.arange(width, device=self._device) > own[:, None]
        mask = torch.zeros(hidden.shape, dtype=self._dtype, device=self._device)
        mask.masked_fill_(hidden, float("-inf"))
        everything = len(self._decode) == len(self._slots)
        rows = None if everything else self._tensor([row for row, _ in self._decode])
        return Decode(rows, pages, mask[:, None, None])

    def _tensor(self, numbers: list[int]) -> torch.Tensor:
        return torch.tensor(numbers, device=self._device)

    def finish(self) -> PagedBatch:
        return PagedBatch(self._kv, self._tensor(self._slots), self._chunks, self._finish_decode())
