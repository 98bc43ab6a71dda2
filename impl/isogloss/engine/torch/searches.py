"""The beam searches under way: gathers logits, moves the searches on, and has the scheduler branch their sequences.

All beams of a request take their step together, so one that has its logits waits for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from isogloss.engine.torch.beams import Beam, BeamSearch, Candidate, Hypothesis
from isogloss.engine.torch.jobs import Choice, Job
from isogloss.engine.torch.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Progress:
    """One search has looked one token further."""

    job: Job
    tokens: int = 0
    """Beams that got a token; 0 when the search is over."""
    best: Sequence[Hypothesis] = ()
    """What the request asked for, when the search is over; fewer where the model allows no more."""


class Searches:
    """One search per request with beams. Used by one thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._searches: dict[Job, BeamSearch] = {}

    def take(self, choice: Choice, logits: torch.Tensor) -> None:
        """The next token's logits, [vocabulary], of a sequence that is computed."""
        search = self._searches.get(choice.job)
        if search is None:
            search = self._searches[choice.job] = BeamSearch(choice.job)
        search.take(choice, logits)

    def forget(self, job: Job) -> None:
        """The request has ended. Idempotent."""
        self._searches.pop(job, None)

    def step(self) -> list[Progress]:
        """Move on all searches whose beams are all computed."""
        ready = [(job, search) for job, search in self._searches.items() if search.ready]
        return [self._move(job, search) for job, search in ready]

    def _move(self, job: Job, search: BeamSearch) -> Progress:
        going = search.step()
        if going is None:
            return Progress(job)
        for beam in search.beams:
            beam.choice.trusted = True
        if not going:
            return Progress(job, best=search.best)
        search.beams = self._branch(search.beams, going)
        return Progress(job, tokens=len(going))

    def _branch(self, beams: Sequence[Beam], going: Sequence[Candidate]) -> list[Beam]:
        """The new beams. Of several children of a beam the first takes its place, the others share its blocks."""
        parents = [one.parent for one in going]
        for beam in beams:
            beam.choice.waiting_forks = ()
            if beam not in parents:
                self._scheduler.remove(beam.choice)
        places = {parent.choice.index for parent in parents}
        free = iter(sorted(set(range(len(going) + len(beams))) - places))
        choices = [
            parent.choice if parents.index(parent) == number else self._scheduler.branch(parent.choice, next(free))
            for number, parent in enumerate(parents)
        ]
        for choice, one in zip(choices, going, strict=True):
            choice.append(one.token)
        return [Beam(choice, one.total, one.scores) for choice, one in zip(choices, going, strict=True)]
