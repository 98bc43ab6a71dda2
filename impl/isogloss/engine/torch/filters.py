"""top_k, top_p and min_p, each as the lowest logit that it keeps.

A floor does not say in which order candidates of equal logits come, so they stand or fall
together, and the result does not depend on what other rows share the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from isogloss.engine.api import Sampling

NUCLEUS_WIDTHS = (128, 2048)
"""How many of the best candidates to look at for top_p before all are sorted."""


def keep_floor(logits: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor | None:
    """The lowest logit that stays in each row, [rows]; None if nothing is filtered.

    `logits` [rows, vocabulary] have the temperature in them. Order as in vLLM: min_p, top_k, and
    top_p over what is left, renormalised.
    """
    vocabulary = logits.shape[1]
    min_p = [row for row, s in enumerate(samplings) if s.min_p > 0]
    top_k = [row for row, s in enumerate(samplings) if 0 < s.top_k < vocabulary]
    top_p = [row for row, s in enumerate(samplings) if s.top_p < 1]
    if not (min_p or top_k or top_p):
        return None
    floor = torch.full(logits.shape[:1], float("-inf"), device=logits.device)
    if min_p:
        _raise(floor, min_p, _min_p_floor(logits[min_p], [samplings[r].min_p for r in min_p]))
    if top_k:
        _raise(floor, top_k, _top_k_floor(logits[top_k], [samplings[r].top_k for r in top_k]))
    if top_p:
        shares = [samplings[r].top_p for r in top_p]
        _raise(floor, top_p, _top_p_floor(logits[top_p], floor[top_p], shares))
    return floor


def _raise(floor: torch.Tensor, rows: list[int], values: torch.Tensor) -> None:
    floor[rows] = torch.maximum(floor[rows], values)


def _min_p_floor(logits: torch.Tensor, shares: list[float]) -> torch.Tensor:
    return logits.amax(dim=-1) + torch.tensor(shares, device=logits.device).log()


def _top_k_floor(logits: torch.Tensor, counts: list[int]) -> torch.Tensor:
    best = logits.topk(max(counts), dim=-1).values
    last = torch.tensor(counts, device=logits.device)[:, None] - 1
    return best.gather(1, last)[:, 0]


def _top_p_floor(logits: torch.Tensor, floor: torch.Tensor, shares: list[float]) -> torch.Tensor:
    peak = logits.amax(dim=-1, keepdim=True)
    kept = (logits - peak).exp_().masked_fill_(logits < floor[:, None], 0)
    wanted = torch.tensor(shares, dtype=torch.float64, device=logits.device)
    wanted = wanted * kept.sum(dim=-1, dtype=torch.float64)
    result = floor.clone()
    open_rows = torch.arange(len(shares), device=logits.device)
    for width in (*NUCLEUS_WIDTHS, logits.shape[1]):
        best = logits[open_rows].topk(min(width, logits.shape[1]), dim=-1).values
        weights = (best - peak[open_rows]).exp_().double()
        reached = weights.cumsum(dim=-1)
        # The candidate that reaches the wanted mass is the last one kept.
        last = (reached < wanted[open_rows, None]).sum(dim=-1)
        done = last < best.shape[1]
        result[open_rows[done]] = best[done].gather(1, last[done, None])[:, 0]
        open_rows = open_rows[~done]
        if len(open_rows) == 0:
            break
    return result
