"""What the suite says: one result per thing it looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Level = Literal["core", "extended"]


class Status(StrEnum):
    """How a look ended."""

    PASS = "pass"  # noqa: S105 (no secret)
    FAIL = "fail"
    ERROR = "error"
    """The suite itself could not look: no answer, or a fault of its own."""
    UNSUPPORTED = "unsupported"
    """The server said properly that it lacks the feature. Never counted as a pass."""
    SKIP = "skip"
    """Not proved, for the reason given."""
    DISABLED = "disabled"
    """Left out by the options of the run, or by whoever interrupted it."""


_WEIGHT = (Status.FAIL, Status.ERROR, Status.UNSUPPORTED, Status.SKIP, Status.DISABLED, Status.PASS)
"""The heaviest of several looks at one thing decides."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one look at the server ended, and what was seen."""

    status: Status
    expected: str = ""
    got: str = ""
    """What came back; the reason where nothing was proved."""
    curl: str = ""
    """A command that repeats the request; keys are left out."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the suite says of one requirement."""

    id: str
    """The ledger's id, where the requirement is one of its entries."""
    step: str
    status: Status
    requirement: str
    """The sentence that holds, or should."""
    level: Level = "core"
    source: str = ""
    """Where the requirement comes from."""
    expected: str = ""
    got: str = ""
    curl: str = ""
    seconds: float = 0.0
    deviation: str = ""
    """Why the server is known to fail this; empty if it is not."""


def heaviest(outcomes: Iterable[Outcome]) -> Outcome:
    """What several looks at one thing amount to: the first of the heaviest; a skip if there was none."""
    looked = list(outcomes)
    if not looked:
        return Outcome(Status.SKIP, got="nothing to look at")
    return min(looked, key=lambda outcome: _WEIGHT.index(outcome.status))
