"""An executor for any transformers causal LM whose attention goes through the library's interface.

It works on every device that torch has. Speed is that of the model's own modules.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from isogloss.engine.media import Media
from isogloss.engine.torch.adapters import Adapter
from isogloss.engine.torch.attention import (
    IMPLEMENTATION,
    KVShape,
    PagedKV,
    current_batch,
    plan_batch,
)
from isogloss.engine.torch.executor import Span, UnsupportedModelError
from isogloss.engine.torch.lora import AdapterHooks
from isogloss.engine.torch.multimodal.family import Family
from isogloss.engine.torch.support import (
    check_config,
    check_forward,
    check_logits,
    probe_shapes,
    stock_logits,
)


class TransformersExecutor:
    """Implements `Executor` over a model that uses the paged attention function."""

    def __init__(self, model: Any, kv: PagedKV, family: Family | None = None) -> None:
        self._model = model
        self._family = family
        self._kv = kv
        self._device: torch.device = model.device
        self._dtype: torch.dtype = model.dtype
        self._adapters = AdapterHooks(model, ())
        self._selects_rows = "logits_to_keep" in accepted_arguments(model)

    @property
    def vocab_size(self) -> int:
        """Width of a row of logits."""
        return int(self._model.config.get_text_config().vocab_size)

    @property
    def block_size(self) -> int:
        """Positions in a block."""
        return self._kv.block_size

    @property
    def block_count(self) -> int:
        """Blocks in the cache."""
        return self._kv.blocks

    def add_adapters(self, adapters: Sequence[Adapter]) -> None:
        """Let spans name these adapters; once, before anything is served. Raises UnsupportedModelError."""
        self._adapters = AdapterHooks(self._model, adapters)
        for adapter in adapters:
            self.forward([Span((0, 1), 0, (1, 2), adapter=adapter.name)])
        self.clear_blocks((1, 2))
        self._adapters.check()

    @torch.inference_mode()
    def forward(self, spans: Sequence[Span]) -> torch.Tensor:
        """Compute all spans in one pass over the model."""
        keep = self._tensor(_wanted_rows(spans))
        arguments = {"logits_to_keep": keep} if self._selects_rows else {}
        token = current_batch.set(plan_batch(self._kv, spans, self._dtype))
        try:
            with self._adapters.active(spans):
                logits = self._model(
                    **self._inputs(spans),
                    position_ids=self._positions(spans),
                    use_cache=False,
                    **arguments,
                ).logits[0]
        finally:
            current_batch.reset(token)
        rows: torch.Tensor = logits if self._selects_rows else logits[keep]
        return rows.float()

    @torch.inference_mode()
    def encode(self, medium: Media) -> torch.Tensor:
        """Run the part of the model that sees or hears."""
        if self._family is None:
            raise UnsupportedModelError("the model takes no media")
        return self._family.encode(self._model, medium)

    def _inputs(self, spans: Sequence[Span]) -> dict[str, torch.Tensor]:
        """Tokens, or embeddings where a span brings some of its own."""
        ids = self._tensor([token for span in spans for token in span.tokens])[None]
        if not any(span.embedded for span in spans):
            return {"input_ids": ids}
        embeddings = self._model.get_input_embeddings()(ids)
        for first, span in _with_rows(spans):
            for part in span.embedded:
                row = first + part.row
                embeddings[0, row : row + len(part.values)] = part.values
        return {"inputs_embeds": embeddings}

    def _positions(self, spans: Sequence[Span]) -> torch.Tensor:
        """[1, rows], or [3, 1, rows] where a span has three positions for a token."""
        starts = [(span.start + span.shift, len(span.tokens)) for span in spans]
        counted = self._tensor([position for start, count in starts for position in range(start, start + count)])[None]
        if all(span.positions is None for span in spans):
            return counted
        positions = counted.repeat(3, 1, 1)
        for first, span in _with_rows(spans):
            if span.positions is not None:
                positions[:, 0, first : first + len(span.tokens)] = span.positions
        return positions

    def _tensor(self, numbers: list[int]) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)

    @torch.inference_mode()
    def copy_block(self, source: int, target: int) -> None:
        """Copy one block over another."""
        self._kv.copy(source, target)

    @torch.inference_mode()
    def clear_blocks(self, blocks: Sequence[int]) -> None:
        """Zero blocks."""
        self._kv.clear(blocks)


def accepted_arguments(model: Any) -> frozenset[str]:
    """Names of the arguments of a model's forward pass."""
    return frozenset(inspect.signature(model.forward).parameters)


def _with_rows(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Each span, and its first row in the batch."""
    first = 0
    for span in spans:
        yield first, span
        first += len(span.tokens)


def _wanted_rows(spans: Sequence[Span]) -> list[int]:
    rows: list[int] = []
    end = 0
    for span in spans:
        end += len(span.tokens)
        rows += range(end - span.wanted, end)
    return rows


def _page_attention(model: Any) -> None:
    """Switch the language model to the paged attention; towers beside it keep theirs."""
    config = model.config
    parts = [name for name in config.sub_configs if getattr(config, name) is config.get_text_config()]
    model.set_attn_implementation({parts[0]: IMPLEMENTATION} if parts else IMPLEMENTATION)


class PreparedModel:
    """A model that was looked at and switched to paged attention, before memory is given to it."""

    def __init__(self, model: Any, context_length: int, family: Family | None = None) -> None:
        """Raises UnsupportedModelError."""
        check_config(model.config.get_text_config(), context_length)
        check_forward(accepted_arguments(model))
        self._model = model
        self._family = family
        self._expected = stock_logits(model)
        _page_attention(model)
        self.shapes: list[KVShape] = probe_shapes(model, context_length)

    def bytes_per_block(self, block_size: int) -> int:
        """Memory that one block takes in all layers."""
        numbers = block_size * sum(shape.elements for shape in self.shapes)
        return numbers * int(self._model.dtype.itemsize)

    def executor(self, blocks: int, block_size: int) -> TransformersExecutor:
        """Allocate the cache and compare the result with the model's own. Raises
        UnsupportedModelError."""
        model = self._model
        kv = PagedKV(self.shapes, blocks, block_size, model.dtype, model.device)
        executor = TransformersExecutor(model, kv, self._family)
        check_logits(executor, model, self._expected)
        return executor
