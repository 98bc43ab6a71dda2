"""top_k, top_p and min_p, each as the lowest logit that it keeps.

A floor does not say in which order candidates of equal logits come, so they stand or fall
together, and the result does not depend on what other rows share the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from isogloss.engine.api import Sampling

FIRST_LOOK = 128
"""How many of the best candidates to look at for top_p before the whole row is counted."""
BUCKETS = 2048
BUCKETS_PER_UNIT = 64.0
"""Buckets that one unit of logit falls into; the last bucket takes all the rest."""


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
    """The candidate that reaches the wanted share of what earlier filters left is the last kept."""
    peak = logits.amax(dim=-1, keepdim=True)
    kept = (logits - peak).exp_().masked_fill_(logits < floor[:, None], 0)
    wanted = torch.tensor(shares, dtype=torch.float64, device=logits.device)
    wanted = wanted * kept.sum(dim=-1, dtype=torch.float64)
    best = logits.topk(min(FIRST_LOOK, logits.shape[1]), dim=-1).values
    last = _reached(best, peak, wanted[:, None])
    done = last < best.shape[1]
    result = best.gather(1, last.clamp(max=best.shape[1] - 1)[:, None])[:, 0]
    if not done.all():
        rest = ~done
        result[rest] = _search_floor(logits[rest], kept[rest], wanted[rest])
    return result


def _reached(best: torch.Tensor, peak: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """How many of the candidates [*, best first] lie before the one that reaches the mass."""
    weights = (best - peak).exp_().double()
    return (weights.cumsum(dim=-1) < wanted).sum(dim=-1)


def _search_floor(logits: torch.Tensor, kept: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Counts mass in buckets of similar logits and sorts only the one that reaches what is wanted:
    sorting whole rows would take longer than the model."""
    peak = logits.amax(dim=-1, keepdim=True)
    bucket = ((peak - logits) * BUCKETS_PER_UNIT).clamp_(max=BUCKETS - 1).long()
    mass = torch.zeros(len(logits), BUCKETS, dtype=torch.float64, device=logits.device)
    reached = mass.scatter_add_(1, bucket, kept.double()).cumsum(dim=-1)
    # Sums in another order may fall short of the whole by a last bit.
    wanted = torch.minimum(wanted, reached[:, -1])
    last = (reached < wanted[:, None]).sum(dim=-1)
    before = (reached - mass).gather(1, last[:, None])[:, 0]
    floors = []
    for row, number in enumerate(last.tolist()):
        best = logits[row][bucket[row] == number].sort(descending=True).values
        index = _reached(best, peak[row], wanted[row] - before[row])
        floors.append(best[index.clamp(max=len(best) - 1)])
    return torch.stack(floors)
