"""Runs the steps one after the other and hands out results as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from isogloss_conformance.checks import Check, Step
from isogloss_conformance.effects.step import EffectsStep
from isogloss_conformance.faults.step import FaultsStep
from isogloss_conformance.fuzzing import FuzzStep
from isogloss_conformance.results import Result, Status
from isogloss_conformance.rules.step import RulesStep
from isogloss_conformance.session import Session
from isogloss_conformance.smoke import SmokeStep
from isogloss_conformance.streams.step import StreamsStep
from isogloss_conformance.transport import TransportStep


class MakeStep(Protocol):
    """A class of steps."""

    name: str

    def __call__(self, session: Session, /) -> Step:
        """A step for one session."""
        ...


STEPS: tuple[MakeStep, ...] = (
    SmokeStep,
    RulesStep,
    FaultsStep,
    EffectsStep,
    StreamsStep,
    TransportStep,
    FuzzStep,
)
"""In the order in which they run: the quickest to tell that nothing works comes first."""
PARALLEL = frozenset({"rules"})
"""Steps whose checks do not disturb each other."""


class Runner:
    """The checks of one run. `known` has the reasons of deviations by check."""

    def __init__(
        self, session: Session, steps: Sequence[MakeStep] = STEPS, known: Mapping[str, str] | None = None
    ) -> None:
        self._session = session
        self._known = known or {}
        made = [step(session) for step in steps]
        self.checks: list[Check] = [check for step in made for check in step.checks()]

    @property
    def wanted(self) -> list[Check]:
        """Checks that the options of the run select."""
        return [check for check in self.checks if self._is_wanted(check)]

    def run(self) -> Iterator[Result]:
        """All results, the checks that were left out among them."""
        steps = dict.fromkeys(check.step for check in self.checks)
        for step in steps:
            mine = [check for check in self.checks if check.step == step]
            yield from (check.disabled() for check in mine if not self._is_wanted(check))
            yield from map(self._marked, self._run([check for check in mine if self._is_wanted(check)], step))

    def left(self, results: Iterable[Result]) -> list[Result]:
        """What a run that was interrupted has no results for."""
        made = {result.id for result in results}
        return [check.disabled("interrupted") for check in self.checks if check.id not in made]

    def _run(self, checks: list[Check], step: str) -> Iterator[Result]:
        jobs = self._session.options.jobs if step in PARALLEL else 1
        if jobs == 1:
            yield from (check.run() for check in checks)
        else:
            pool = ThreadPoolExecutor(jobs)
            try:
                yield from pool.map(Check.run, checks)
            finally:  # after Ctrl-C, what has not begun is not waited for
                pool.shutdown(cancel_futures=True)

    def _marked(self, result: Result) -> Result:
        """The same result without secrets, which servers repeat; with the reason if it is a known deviation."""
        redacted = self._session.client.redacted
        known = self._known.get(result.id, "") if result.status is Status.FAIL else ""
        return replace(
            result,
            expected=redacted(result.expected),
            got=redacted(result.got),
            curl=redacted(result.curl),
            deviation=known,
        )

    def _is_wanted(self, check: Check) -> bool:
        steps = self._session.options.steps
        return (not steps or check.step in steps) and self._session.wanted(check.id, check.level)
