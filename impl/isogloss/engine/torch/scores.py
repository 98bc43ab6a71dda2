"""Log probabilities to report: of the model's own distribution, before anything changes it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from isogloss.engine.tokens import RawScore

ROWS_AT_ONCE = 64
"""Bounds the memory that a long prompt takes: each row is as wide as the vocabulary."""


def score_rows(logits: torch.Tensor, chosen: Sequence[int], alternatives: Sequence[int]) -> list[RawScore]:
    """Score one chosen token per row of logits [rows, vocabulary], with so many alternatives."""
    scores: list[RawScore] = []
    for first in range(0, len(chosen), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        scores += _score_part(logits[part], chosen[part], alternatives[part])
    return scores


def _score_part(logits: torch.Tensor, chosen: Sequence[int], alternatives: Sequence[int]) -> list[RawScore]:
    logprobs = torch.log_softmax(logits, dim=-1)
    own = logprobs.gather(1, torch.tensor(chosen, device=logits.device)[:, None])
    ranks = (logprobs > own).sum(dim=-1) + 1
    tops = _best(logprobs, alternatives)
    return [
        RawScore(logprob, rank, top)
        for logprob, rank, top in zip(own[:, 0].tolist(), ranks.tolist(), tops, strict=True)
    ]


def _best(logprobs: torch.Tensor, alternatives: Sequence[int]) -> list[tuple[tuple[int, float], ...]]:
    widest = min(max(alternatives), logprobs.shape[1])
    if widest == 0:
        return [()] * len(alternatives)
    values, ids = logprobs.topk(widest, dim=-1)
    return [
        tuple(zip(row_ids[:count], row_values[:count], strict=True))
        for row_ids, row_values, count in zip(ids.tolist(), values.tolist(), alternatives, strict=True)
    ]
