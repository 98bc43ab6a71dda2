"""Beam search: which sequences go on, and which of those that ended are the best.

The same as `generate(num_beams=…, early_stopping=False, length_penalty=1.0)` of transformers, token for token. A
sequence counts by the sum of its tokens' log probabilities; one that has ended, by their mean. What changes logits
when one samples (`logit_bias`, penalties, the ban of ends before `min_tokens`) changes log probabilities here, which
are not normalised again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from isogloss.engine.tokens import RawScore, Sampled, TokenEnd
from isogloss.engine.torch.jobs import Choice, Job
from isogloss.engine.torch.sampler import adjust
from isogloss.engine.torch.scores import score_rows


@dataclass(slots=True, eq=False)
class Beam:
    """A sequence that goes on."""

    choice: Choice
    total: float = 0.0
    """Sum of the log probabilities of its tokens."""
    scores: tuple[RawScore, ...] = ()
    """One per generated token, if the request asks for them."""
    logits: torch.Tensor | None = None
    """[vocabulary], once they are computed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One more token for one beam."""

    parent: Beam
    row: int
    """The parent's place among the beams."""
    token: int
    total: float
    scores: tuple[RawScore, ...] = ()
    """Of all tokens up to this one, once it is known that they are needed."""

    @property
    def length(self) -> int:
        """Tokens generated, this one included."""
        return self.parent.choice.generated + 1


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A sequence that has ended."""

    tokens: tuple[int, ...]
    scores: tuple[RawScore, ...]
    end: TokenEnd
    mean: float
    """Mean log probability of its tokens."""

    def events(self, choice: int) -> list[Sampled]:
        """All its tokens, as those of one choice."""
        last = len(self.tokens) - 1
        scores: Sequence[RawScore | None] = self.scores or [None] * len(self.tokens)
        return [
            Sampled(choice, token, score, self.end if index == last else None)
            for index, (token, score) in enumerate(zip(self.tokens, scores, strict=True))
        ]


class BeamSearch:
    """The search of one request."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._width = job.sequences
        self.beams = [Beam(choice) for choice in job.choices]
        """Those that go on, best first."""
        self.ended: list[Hypothesis] = []
        """The best of those that have ended, best first; never more than there are beams."""

    @property
    def ready(self) -> bool:
        """Whether the logits of all beams are there. A beam that was preempted since needs them anew."""
        return all(beam.logits is not None and beam.choice.remaining == 0 for beam in self.beams)

    @property
    def best(self) -> list[Hypothesis]:
        """What the request asked for."""
        return self.ended[: self._job.request.n]

    def take(self, choice: Choice, logits: torch.Tensor) -> None:
        """Logits for the next token of a beam, [vocabulary]."""
        for beam in self.beams:
            if beam.choice is choice:
                beam.logits = logits

    @torch.inference_mode()
    def step(self) -> list[Candidate] | None:
        """Look one token further. The candidates that go on, best first; none when the search is over.

        None if a beam's logits are not finite numbers.
        """
        rows = torch.stack([beam.logits for beam in self.beams if beam.logits is not None])
        if not torch.isfinite(rows.amax(dim=-1)).all():
            return None
        going: list[Candidate] = []
        for rank, candidate in enumerate(self._candidates(rows)):
            end = self._job.end_by(candidate.token, candidate.length)
            if end is None:
                going.append(candidate)
            elif rank < self._width:
                self.ended.append(self._hypothesis(candidate, rows, end))
        # Stable: of equals the earlier stays.
        self.ended = sorted(self.ended, key=lambda one: one.mean, reverse=True)[: self._width]
        return self._scored(going[: self._width], rows) if self._can_improve(going) else []

    def _candidates(self, rows: torch.Tensor) -> list[Candidate]:
        """The best continuations of all beams, best first: so many that even if some end, as many beams go on."""
        totals = torch.tensor([beam.total for beam in self.beams], device=rows.device)
        changed = torch.log_softmax(rows, dim=-1)
        adjust(changed, [beam.choice.sampler for beam in self.beams])
        changed += totals[:, None]
        count = max(2, 1 + len(self._job.end_ids)) * self._width
        best = changed.flatten().topk(min(count, changed.numel()))
        width = rows.shape[1]
        return [
            Candidate(self.beams[place // width], place // width, place % width, total)
            for place, total in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if total != float("-inf")
        ]

    def _hypothesis(self, candidate: Candidate, rows: torch.Tensor, end: TokenEnd) -> Hypothesis:
        tokens = (*candidate.parent.choice.output, candidate.token)
        scores = self._scored([candidate], rows)[0].scores
        return Hypothesis(tokens, scores, end, candidate.total / len(tokens))

    def _can_improve(self, going: Sequence[Candidate]) -> bool:
        """Whether the best of those that go on may still beat the worst of those that have ended.

        It is taken at its mean so far, as if later tokens never raised it.
        """
        if not going:
            return False
        return len(self.ended) < self._width or going[0].total / going[0].length > self.ended[-1].mean

    def _scored(self, candidates: Sequence[Candidate], rows: torch.Tensor) -> list[Candidate]:
        """The candidates with the scores of their tokens, if the request asks for them."""
        count = self._job.request.logprobs
        if count is None or not candidates:
            return list(candidates)
        logits = rows[[one.row for one in candidates]]
        new = score_rows(logits, [one.token for one in candidates], [count] * len(candidates))
        return [replace(one, scores=(*one.parent.scores, score)) for one, score in zip(candidates, new, strict=True)]
