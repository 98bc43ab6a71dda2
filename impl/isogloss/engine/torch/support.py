"""Finds out, before anything is served, whether the paged executor computes a model right.

Three looks: at the configuration, at what the attention layers ask for, and at the logits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from isogloss.engine.torch.attention import AttentionCall, KVShape, current_batch
from isogloss.engine.torch.executor import Executor, Span, UnsupportedModelError

UNSUPPORTED_OPTIONS = {
    "softcap": "a cap on attention scores",
    "s_aux": "attention sinks",
    "position_bias": "a position bias on attention scores",
    "cu_seq_lens_q": "packed sequences of its own",
}
"""What an attention layer may ask for and the paged attention does not do."""

TOLERANCE = {torch.float32: 2e-3, torch.float16: 5e-2, torch.bfloat16: 3e-1}
"""Largest relative error of the logits, ||a - b|| / ||b - mean(b)||. In narrow types a model differs from itself by
a third of this when it is computed another way."""


def check_config(config: Any, context_length: int) -> None:
    """Refuse what the configuration already tells. Raises UnsupportedModelError."""
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    window = getattr(config, "sliding_window", None) or context_length
    if kinds == {"sliding_attention"} and window >= context_length:
        return
    if kinds:
        raise UnsupportedModelError(f"layers of these kinds are not supported: {sorted(kinds)}")


def check_forward(accepted: frozenset[str]) -> None:
    """Refuse a model whose forward pass cannot be told positions. Raises UnsupportedModelError."""
    if "position_ids" not in accepted:
        raise UnsupportedModelError("the model's forward pass takes no position_ids")


class Probe:
    """A batch of one short sequence that records what each attention layer stores and asks."""

    def __init__(self, context_length: int) -> None:
        self._context_length = context_length
        self.shapes: dict[int, KVShape] = {}

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Plain causal attention."""
        self._check(call.module, call.options)
        shape = KVShape(call.key.shape[1], call.key.shape[2], call.value.shape[2])
        self.shapes[call.module.layer_idx] = shape
        query, key, value = (t.transpose(0, 1)[None] for t in (call.query, call.key, call.value))
        out = scaled_dot_product_attention(query, key, value, is_causal=True, scale=call.scaling, enable_gqa=True)
        return out[0].transpose(0, 1)

    def _check(self, module: Any, options: dict[str, Any]) -> None:
        for name, meaning in UNSUPPORTED_OPTIONS.items():
            if options.get(name) is not None:
                raise UnsupportedModelError(f"the model uses {meaning}, which is not supported")
        window = options.get("sliding_window")
        if window is not None and window < self._context_length:
            raise UnsupportedModelError(
                f"the model attends to a sliding window of {window} tokens, which is not "
                f"supported: serve it with a max_model_len of at most {window}"
            )
        if not options.get("is_causal", getattr(module, "is_causal", True)):
            raise UnsupportedModelError("the model attends to later tokens, which is not supported")
        if module.layer_idx is None or module.layer_idx in self.shapes:
            raise UnsupportedModelError("the model does not number its attention layers one by one")


@torch.inference_mode()
def probe_shapes(model: Any, context_length: int) -> list[KVShape]:
    """What each layer stores per position. The model must already use the paged attention.

    Raises UnsupportedModelError, also if a layer keeps state of another kind than keys and values.
    """
    probe = Probe(context_length)
    token = current_batch.set(probe)
    try:
        model(input_ids=_check_tokens(model, 4)[None], use_cache=False)
    finally:
        current_batch.reset(token)
    layers = model.config.get_text_config().num_hidden_layers
    if sorted(probe.shapes) != list(range(layers)):
        raise UnsupportedModelError(
            f"{len(probe.shapes)} of {layers} layers use the attention interface of transformers; "
            "models with other kinds of layers are not supported"
        )
    return [probe.shapes[layer] for layer in range(layers)]


def _check_tokens(model: Any, count: int) -> torch.Tensor:
    """Some different tokens, away from the special ones at the start of most vocabularies."""
    vocabulary = model.get_input_embeddings().weight.shape[0]
    tokens: torch.Tensor = (torch.arange(count, device=model.device) * 37 + 11) % vocabulary
    return tokens


CHECK_LENGTH = 21


@torch.inference_mode()
def stock_logits(model: Any) -> torch.Tensor:
    """What transformers itself computes for the check tokens: [CHECK_LENGTH, vocabulary]."""
    tokens = _check_tokens(model, CHECK_LENGTH)[None]
    logits: torch.Tensor = model(input_ids=tokens, use_cache=False).logits[0]
    return logits.float()


def check_logits(executor: Executor, model: Any, expected: torch.Tensor) -> None:
    """Compare the executor with `stock_logits` over two chunks and a decode step.

    Raises UnsupportedModelError if they differ by more than the number type explains.
    """
    tokens = _check_tokens(model, CHECK_LENGTH).tolist()
    table = list(range(1, 2 + CHECK_LENGTH // executor.block_size))
    parts = []
    for first, last in ((0, 9), (9, CHECK_LENGTH - 1), (CHECK_LENGTH - 1, CHECK_LENGTH)):
        span = Span(tokens[first:last], first, table, wanted=last - first)
        parts.append(executor.forward([span]))
    executor.clear_blocks(table)
    error = _relative_error(torch.cat(parts), expected)
    if not error <= TOLERANCE[model.dtype]:
        raise UnsupportedModelError(
            f"the paged executor does not compute this model right: logits differ from those of "
            f"transformers by {error:.2g} of their spread"
        )


def _relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    spread = (expected - expected.mean(dim=-1, keepdim=True)).norm()
    return float((actual - expected).norm() / spread)
