"""Beam search over the tiny model: as many beams as asked, the best ended sequences by mean log probability.

It knows the rules that end a choice, and none of the controls of sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isogloss.engine.api import GenerationRequest
from isogloss.engine.scripted.model import TinyModel, first_state
from isogloss.engine.scripted.vocabulary import END
from isogloss.engine.tokens import Sampled, TokenEnd


@dataclass(frozen=True, slots=True)
class _Beam:
    state: int
    total: float = 0.0
    """Sum of the log probabilities of its tokens."""
    tokens: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        return self.total / len(self.tokens)


class _Search:
    def __init__(self, model: TinyModel, request: GenerationRequest, limit: int) -> None:
        self._model = model
        self._stopping = request.stopping
        self._width = request.beams or request.n
        self._limit = limit
        self._ended: list[_Beam] = []

    def best(self, state: int) -> list[_Beam]:
        """All that ended, best first; as many as there are beams."""
        beams = [_Beam(state)]
        while beams and self._can_improve(beams[0]):
            grown = self._grown(beams)
            self._ended += [one for one in grown[: self._width] if self._ends(one)]
            self._ended = sorted(self._ended, key=lambda one: -one.mean)[: self._width]
            beams = [one for one in grown if not self._ends(one)][: self._width]
        return self._ended

    def _can_improve(self, best: _Beam) -> bool:
        return len(self._ended) < self._width or best.mean > self._ended[-1].mean

    def _grown(self, beams: Sequence[_Beam]) -> list[_Beam]:
        """The likeliest continuations of all beams, best first: twice as many as beams, since some may end."""
        ids, logprobs = self._model.tops([beam.state for beam in beams], self._width + 1)
        totals = np.array([beam.total for beam in beams])[:, None] + logprobs
        if len(beams[0].tokens) < self._stopping.min_tokens and not self._stopping.ignore_eos:
            totals[ids == END] = -np.inf
        order = np.argsort(-totals, axis=None, kind="stable")[: 2 * self._width]
        places = zip(*np.unravel_index(order, totals.shape), strict=True)
        return [
            self._longer(beams[row], int(ids[row, column]), float(totals[row, column]))
            for row, column in places
            if np.isfinite(totals[row, column])
        ]

    def _longer(self, beam: _Beam, token: int, total: float) -> _Beam:
        return _Beam(self._model.state((token,), beam.state), total, (*beam.tokens, token))

    def _ends(self, beam: _Beam) -> bool:
        return len(beam.tokens) >= self._limit or (beam.tokens[-1] == END and not self._stopping.ignore_eos)


class FoundSequence:
    """One choice that a search has found. Its steps only tell the tokens."""

    def __init__(self, model: TinyModel, request: GenerationRequest, choice: int, tokens: tuple[int, ...]) -> None:
        self.made = 0
        """Tokens told so far."""
        self.ended = False
        self._model = model
        self._choice = choice
        self._tokens = tokens
        self._top = request.logprobs
        self._ignores_end = request.stopping.ignore_eos
        self._state = model.state(request.prompt, first_state(request.media))

    def step(self) -> Sampled:
        """Tell the next token."""
        token = self._tokens[self.made]
        score = None if self._top is None else self._model.score(self._state, token, self._top)
        self._state = self._model.state((token,), self._state)
        self.made += 1
        self.ended = self.made == len(self._tokens)
        stopped = token == END and not self._ignores_end
        end = TokenEnd("stop" if stopped else "length") if self.ended else None
        return Sampled(self._choice, token, score, end)


def found_sequences(model: TinyModel, request: GenerationRequest, limit: int) -> tuple[FoundSequence, ...]:
    """The best choices, best first, of at most `limit` tokens each."""
    found = _Search(model, request, limit).best(model.state(request.prompt, first_state(request.media)))
    return tuple(FoundSequence(model, request, i, beam.tokens) for i, beam in enumerate(found[: request.n]))
