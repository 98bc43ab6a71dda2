"""A check: one requirement and the way to look at it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from isogloss_conformance.results import Level, Outcome, Result, Status


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement. `look` asks the server; it is called once, in any thread."""

    id: str
    step: str
    requirement: str
    look: Callable[[], Outcome]
    level: Level = "core"
    source: str = ""

    def run(self) -> Result:
        """Look, and say how long it took. A fault of the suite becomes an `error`."""
        started = time.perf_counter()
        try:
            outcome = self.look()
        except OSError as error:  # of a bare connection
            outcome = Outcome(Status.ERROR, got=f"no answer: {type(error).__name__}: {error}")
        except Exception:  # one broken check must not hide what the others find
            outcome = Outcome(Status.ERROR, got=traceback.format_exc(limit=-3))
        return self._result(outcome, time.perf_counter() - started)

    def disabled(self, reason: str = "") -> Result:
        """The result of a check that is not made; without a reason, since the options leave it out."""
        return self._result(Outcome(Status.DISABLED, got=reason), 0.0)

    def _result(self, outcome: Outcome, seconds: float) -> Result:
        return Result(
            id=self.id,
            step=self.step,
            status=outcome.status,
            requirement=self.requirement,
            level=self.level,
            source=self.source,
            expected=outcome.expected,
            got=outcome.got,
            curl=outcome.curl,
            seconds=round(seconds, 4),
        )


class Step(Protocol):
    """A part of the run: some checks of one kind."""

    name: str

    def checks(self) -> Sequence[Check]:
        """All checks of the step. Asks the server nothing."""
        ...
