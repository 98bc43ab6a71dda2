"""Two reports side by side: where two servers, or two versions of one, differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from isogloss_conformance.report import Report
from isogloss_conformance.results import Result, Status


@dataclass(frozen=True, slots=True)
class Difference:
    """One requirement of which two reports say different things; None where a report is silent."""

    id: str
    requirement: str
    left: Status | None
    right: Status | None


def differences(left: Report, right: Report) -> Iterator[Difference]:
    """All differences, in the order of the left report, then what only the right one has."""
    ours, theirs = _by_id(left), _by_id(right)
    for check_id in dict.fromkeys((*ours, *theirs)):
        known = ours.get(check_id) or theirs[check_id]
        before, after = (side[check_id].status if check_id in side else None for side in (ours, theirs))
        if before != after:
            yield Difference(check_id, known.requirement, before, after)


def same_document(left: Report, right: Report) -> bool:
    """Whether both reports hold the servers against the same document."""
    return left.header.document == right.header.document


def _by_id(report: Report) -> dict[str, Result]:
    return {result.id: result for result in report.results}
