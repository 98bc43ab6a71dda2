"""Choosing a token from logits."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.api import Sampling
from isogloss.engine.scripted.model import Logits

_NEVER = 1e-20
"""Tokens this much less likely than the favourite are left out where tokens are sorted."""


_SMALLEST = float(np.finfo(np.float64).tiny)
_HIGHEST = 1e300
"""What a penalty raises a logit to at most."""
_NOT_DRAWN = random.Random(0)  # noqa: S311 (no secret)
"""Stands where nothing is drawn: to seed one takes longer than a whole greedy token."""


class Sampler:
    """Chooses the tokens of one choice, in the usual order of controls.

    Forbidden tokens and bias, penalties, guide, temperature, min_p, top_k, top_p.
    """

    def __init__(self, sampling: Sampling, choice: int, prompt: Sequence[int], vocab_size: int) -> None:
        self._sampling = sampling
        self._random = _NOT_DRAWN if sampling.greedy else generator(sampling.seed, choice)
        self._penalties: _Penalties | None = None
        if _penalises(sampling):
            self._penalties = _Penalties(sampling, prompt, vocab_size)
        self.takes_favourite = sampling.greedy and not sampling.logit_bias and self._penalties is None
        """Whether the most likely token is chosen whenever it is not forbidden."""

    def choose(self, logits: Logits, forbidden: Iterable[int], allowed: NDArray[np.bool_] | None = None) -> int:
        """The next token; if a guide says which are allowed, one of those."""
        logits = self._adjusted(logits, forbidden)
        if allowed is not None:
            logits[~allowed] = -np.inf
        if self._sampling.greedy:
            return int(logits.argmax())
        return self._draw(_weights(logits, self._sampling))

    def took(self, token: int) -> None:
        """Tell which token followed."""
        if self._penalties is not None:
            self._penalties.count(token)

    def _adjusted(self, logits: Logits, forbidden: Iterable[int]) -> Logits:
        logits = logits.copy()
        for token, bias in self._sampling.logit_bias.items():
            logits[token] += bias
        if self._penalties is not None:
            self._penalties.apply(logits)
        for token in forbidden:
            logits[token] = -np.inf
        return logits

    def _draw(self, weights: Logits) -> int:
        places = weights.cumsum()
        place = self._random.random() * places[-1]
        return min(int(places.searchsorted(place, side="right")), len(places) - 1)


class _Penalties:
    """Penalties for tokens that have come already."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int], vocab_size: int) -> None:
        self._sampling = sampling
        self._counts: NDArray[np.float64] = np.zeros(vocab_size)
        self._seen: NDArray[np.bool_] = np.zeros(vocab_size, dtype=bool)
        self._seen[list(prompt)] = True

    def count(self, token: int) -> None:
        self._counts[token] += 1
        self._seen[token] = True

    def apply(self, logits: Logits) -> None:
        """Repetition counts the prompt too; presence and frequency only what was generated."""
        sampling = self._sampling
        seen = logits[self._seen]
        # A factor near 0 raises without bound; 0 itself is what a smaller one than doubles hold has become.
        factor = max(sampling.repetition_penalty, _SMALLEST)
        with np.errstate(over="ignore"):
            raised = np.minimum(seen / factor, _HIGHEST)
            logits[self._seen] = np.where(seen > 0, raised, seen * factor)
        logits -= sampling.frequency_penalty * self._counts
        logits -= sampling.presence_penalty * (self._counts > 0)


def generator(seed: int | None, choice: int) -> random.Random:
    """A generator made of seed and choice alone; of the system's chance without a seed."""
    return random.Random(None if seed is None else f"{seed}/{choice}")  # noqa: S311 - not a secret


def _penalises(sampling: Sampling) -> bool:
    return bool(sampling.presence_penalty) or bool(sampling.frequency_penalty) or sampling.repetition_penalty != 1


def _weights(logits: Logits, sampling: Sampling) -> Logits:
    """Unnormalised probabilities of the tokens that remain."""
    weights: Logits = np.exp((logits - logits.max()) / sampling.temperature)
    if sampling.min_p > 0:
        weights[weights < sampling.min_p] = 0
    if sampling.top_k > 0 or sampling.top_p < 1:
        _keep_top(weights, sampling)
    return weights


def _keep_top(weights: Logits, sampling: Sampling) -> None:
    """The `top_k` most likely tokens, and of those the fewest that reach `top_p` together."""
    likely = np.flatnonzero(weights > _NEVER)
    order = likely[np.argsort(-weights[likely], kind="stable")]
    weights[weights <= _NEVER] = 0
    if sampling.top_k > 0:
        weights[order[sampling.top_k :]] = 0
    if sampling.top_p < 1:
        reached = weights[order].cumsum()
        kept = int(reached.searchsorted(sampling.top_p * reached[-1])) + 1
        weights[order[kept:]] = 0
