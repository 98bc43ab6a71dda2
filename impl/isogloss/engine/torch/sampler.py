"""Chooses the next token of each row.

Order, as in vLLM: logits, logit_bias, min_tokens mask, penalties, mask of the guide, greedy choice or temperature,
min_p, top_k, top_p, draw. (Hugging Face applies min_p last; the kept set is the same unless top_p
is used with it, where vLLM's nucleus is taken of what min_p leaves.) Reported log probabilities are
of the logits before all of this.

A draw takes one uniform number from the choice's own generator and inverts the distribution over
the vocabulary in order of token id. So a choice depends on its logits and its generator alone, not
on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import pad

from isogloss.engine.api import Sampling
from isogloss.engine.guides.masks import allowed_rows
from isogloss.engine.guides.matcher import GuideMatcher
from isogloss.engine.tokens import RawScore
from isogloss.engine.torch.filters import keep_floor
from isogloss.engine.torch.penalties import TokenHistory, has_penalties, penalize
from isogloss.engine.torch.scores import score_rows

SEGMENT = 256
"""Tokens whose probabilities are summed before the cumulative sum: a long one is slow."""


@dataclass(slots=True)
class SamplerRow:
    """How one choice samples, with the state it keeps between its tokens."""

    sampling: Sampling
    logprobs: int | None = None
    history: TokenHistory | None = None
    """Kept up by the owner; there if penalties are in force."""
    random: np.random.Generator | None = None
    """There unless the row is greedy."""
    banned: tuple[int, ...] = ()
    """Tokens that cannot be chosen now, unless a guide allows no others; ids outside the vocabulary do no harm."""
    guide: GuideMatcher | None = None
    """Kept up by the owner."""

    @property
    def plain(self) -> bool:
        """Whether the most likely token is the choice, and nothing else is asked."""
        return self.sampling.greedy and not self.adjusted

    @property
    def adjusted(self) -> bool:
        """Whether logits change before the choice."""
        return bool(self.history or self.banned or self.sampling.logit_bias or self.guide)


@dataclass(frozen=True, slots=True)
class Pick:
    """A chosen token."""

    token: int
    score: RawScore | None = None


def sampler_row(sampling: Sampling, prompt: Sequence[int], choice: int, logprobs: int | None) -> SamplerRow:
    """The row of one choice at its start."""
    history = TokenHistory(prompt) if has_penalties(sampling) else None
    random = None if sampling.greedy else seeded(sampling.seed, choice)
    return SamplerRow(sampling, logprobs, history, random)


def seeded(seed: int | None, choice: int) -> np.random.Generator:
    """A generator made of seed and choice alone; without a seed, one like no other."""
    if seed is None:
        return np.random.Generator(np.random.PCG64())
    return np.random.Generator(np.random.PCG64([seed % 2**64, choice]))


@torch.inference_mode()
def sample(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[Pick | None]:
    """Choose a token per row of float32 logits [rows, vocabulary].

    None for a row whose logits are not finite numbers, or that has no token left to choose.
    """
    tokens = _choose(logits, rows)
    peaks = logits.amax(dim=-1)
    for row, finite in enumerate(torch.isfinite(peaks).tolist()):
        if not finite:
            tokens[row] = None
    return _with_scores(logits, rows, tokens)


def _choose(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[int | None]:
    special = [index for index, row in enumerate(rows) if not row.plain]
    if len(special) == len(rows):
        return _choose_special(logits.clone(), rows)
    tokens: list[int | None] = [*logits.argmax(dim=-1).tolist()]
    if special:
        chosen = _choose_special(logits[special], [rows[index] for index in special])
        for index, token in zip(special, chosen, strict=True):
            tokens[index] = token
    return tokens


def _choose_special(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[int | None]:
    """Works in place on its own copy of the logits."""
    adjust(logits, rows)
    tokens: list[int | None] = [None] * len(rows)
    usable = [i for i, good in enumerate(torch.isfinite(logits.amax(dim=-1)).tolist()) if good]
    greedy = [index for index in usable if rows[index].random is None]
    drawn = [index for index in usable if rows[index].random is not None]
    for indices, choose in ((greedy, _best), (drawn, _draw)):
        if indices:
            part = logits if len(indices) == len(rows) else logits[indices]
            chosen = choose(part, [rows[index] for index in indices])
            for index, token in zip(indices, chosen, strict=True):
                tokens[index] = token
    return tokens


def _best(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[int]:
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    return tokens


def adjust(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> None:
    """Biases, bans, penalties and guides of each row, in place on [rows, vocabulary]."""
    biases = [
        (index, token, value) for index, row in enumerate(rows) for token, value in row.sampling.logit_bias.items()
    ]
    if biases:
        where, tokens, values = zip(*biases, strict=True)
        logits[list(where), list(tokens)] += torch.tensor(values, device=logits.device)
    width = logits.shape[1]
    bans = [(index, token) for index, row in enumerate(rows) for token in _bans(row) if 0 <= token < width]
    if bans:
        where, tokens = zip(*bans, strict=True)
        logits[list(where), list(tokens)] = float("-inf")
    punished = [(index, row.sampling, row.history) for index, row in enumerate(rows) if row.history]
    if punished:
        indices, samplings, histories = zip(*punished, strict=True)
        penalize(logits, indices, samplings, histories)
    guided = [(index, row.guide, row.banned) for index, row in enumerate(rows) if row.guide]
    if guided:
        indices, guides, bans_of = zip(*guided, strict=True)
        rows_allowed = allowed_rows(guides, bans_of, width)
        ends = [
            [token for token in guide.yields_to if token < width and may[token]]
            for guide, may in zip(guides, rows_allowed, strict=True)
        ]
        allowed = torch.from_numpy(rows_allowed).to(logits.device)
        guided_logits = logits[list(indices)]
        yielded(guided_logits, allowed, ends)
        logits[list(indices)] = guided_logits.masked_fill_(~allowed, float("-inf"))


def yielded(logits: torch.Tensor, allowed: torch.Tensor, ends: Sequence[Sequence[int]]) -> None:
    """In each row that may end give the first of its ends the probability of all that is not allowed, in place."""
    for index, tokens in enumerate(ends):
        if tokens:
            row = logits[index]
            row[tokens[0]] = torch.cat([row[~allowed[index]], row[tokens[0], None]]).logsumexp(dim=0)


def _bans(row: SamplerRow) -> tuple[int, ...]:
    return row.banned if row.guide is None else ()


def _draw(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[int]:
    samplings = [row.sampling for row in rows]
    heat = torch.tensor([[s.temperature] for s in samplings], device=logits.device)
    # Differences to the best first: a logit over a small temperature may be more than float32 holds.
    logits = logits.sub_(logits.amax(dim=-1, keepdim=True)).div_(heat)
    floor = keep_floor(logits, samplings)
    weights = logits.softmax(dim=-1)
    if floor is not None:
        weights.masked_fill_(logits < floor[:, None], 0)
    uniform = [row.random.random() for row in rows if row.random is not None]
    return _invert(weights, torch.tensor(uniform, dtype=torch.float64, device=logits.device))


def _invert(weights: torch.Tensor, uniform: torch.Tensor) -> list[int]:
    """The token of each row at which the cumulative weight passes `uniform` of the whole.

    Never one of weight 0: there the cumulative weight does not rise.
    """
    padded = pad(weights, (0, -weights.shape[1] % SEGMENT))
    segments = padded.view(len(weights), -1, SEGMENT)
    sums = segments.sum(dim=-1).double().cumsum(dim=-1)
    target = _below(uniform * sums[:, -1], sums[:, -1])
    segment = torch.searchsorted(sums, target[:, None], right=True)
    before = pad(sums, (1, 0)).gather(1, segment)[:, 0]
    rows = torch.arange(len(weights), device=weights.device)
    inner = segments[rows, segment[:, 0]].double().cumsum(dim=-1)
    # The two sums may differ in the last bits, so the rest may reach the end of the segment.
    rest = _below(target - before, inner[:, -1])
    offset = torch.searchsorted(inner, rest[:, None], right=True)
    tokens: list[int] = (segment * SEGMENT + offset)[:, 0].tolist()
    return tokens


def _below(value: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    return torch.minimum(value, torch.nextafter(bound, torch.zeros_like(bound)))


def _with_scores(logits: torch.Tensor, rows: Sequence[SamplerRow], tokens: Sequence[int | None]) -> list[Pick | None]:
    picks = [None if token is None else Pick(token) for token in tokens]
    scored = [
        (index, pick.token, row.logprobs)
        for index, (row, pick) in enumerate(zip(rows, picks, strict=True))
        if row.logprobs is not None and pick is not None
    ]
    if scored:
        indices, chosen, counts = zip(*scored, strict=True)
        scores = score_rows(logits[list(indices)], chosen, counts)
        for index, token, score in zip(indices, chosen, scores, strict=True):
            picks[index] = Pick(token, score)
    return picks
