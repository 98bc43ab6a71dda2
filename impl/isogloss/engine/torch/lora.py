"""Applies LoRA adapters inside a model, to the rows of a batch that ask for them.

Hooks on the linear layers add each adapter's part to the rows of its spans. Rows without an adapter are computed as
if there were none, and a batch without any costs one look at a context variable per layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from isogloss.engine.torch.adapters import Adapter, Delta
from isogloss.engine.torch.executor import Span, UnsupportedModelError

Rows = Mapping[str, torch.Tensor]
"""Adapter name to the rows of the batch that it applies to."""

_active: ContextVar[tuple[Rows, int] | None] = ContextVar("active_adapters", default=None)
"""The adapters of the step under way, and how many rows it has."""


class AdapterHooks:
    """The adapters of one model."""

    def __init__(self, model: Any, adapters: Sequence[Adapter]) -> None:
        self._device: torch.device = model.device
        by_layer: dict[str, dict[str, Delta]] = {}
        for adapter in adapters:
            for layer, delta in adapter.deltas.items():
                by_layer.setdefault(layer, {})[adapter.name] = delta
        self._hooks = [_LayerHook(layer, deltas) for layer, deltas in by_layer.items()]
        for hook in self._hooks:
            model.get_submodule(hook.layer).register_forward_hook(hook)

    def check(self) -> None:
        """Raises UnsupportedModelError if a step with each adapter has passed a layer by."""
        for hook in self._hooks:
            if not hook.used:
                raise UnsupportedModelError(f"adapters on {hook.layer!r} are not supported: the model does not call it")

    @contextmanager
    def active(self, spans: Sequence[Span]) -> Iterator[None]:
        """Apply the spans' adapters to what the model computes meanwhile."""
        rows = _rows(spans)
        if not rows:
            yield
            return
        count = sum(len(span.tokens) for span in spans)
        token = _active.set(({name: torch.tensor(own, device=self._device) for name, own in rows.items()}, count))
        try:
            yield
        finally:
            _active.reset(token)


def _rows(spans: Sequence[Span]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    first = 0
    for span in spans:
        last = first + len(span.tokens)
        if span.adapter is not None:
            rows.setdefault(span.adapter, []).extend(range(first, last))
        first = last
    return rows


class _LayerHook:
    """The adapters of one linear layer."""

    def __init__(self, layer: str, deltas: Mapping[str, Delta]) -> None:
        self.layer = layer
        self.used = False
        self._deltas = deltas

    def __call__(self, module: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        active = _active.get()
        if active is None:
            return
        rows, count = active
        flat = inputs[0].reshape(-1, inputs[0].shape[-1])
        if len(flat) != count:
            raise UnsupportedModelError(f"adapters on {self.layer!r} are not supported: it does not see all tokens")
        # What a linear layer returns is its own, so adding in place spoils nothing.
        out = output.view(-1, output.shape[-1])
        for name, own in rows.items():
            delta = self._deltas.get(name)
            if delta is not None:
                self.used = True
                out.index_add_(0, own, delta.of(flat[own]))
