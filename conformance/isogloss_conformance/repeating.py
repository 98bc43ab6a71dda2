"""What a replay takes over from the run that it repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isogloss_conformance.checks import Check
from isogloss_conformance.obstacles import DIALECTS
from isogloss_conformance.reports.reading import ReportError, is_of
from isogloss_conformance.reports.report import Report
from isogloss_conformance.results import Status

Json = Any
CONDITIONS: Mapping[str, Any] = {
    "features": str,
    "max_total_tokens": int,
    "set": tuple[str, ...],
    "patience": float,
    "flood": int,
    "seed": int,
    "examples": int,
}
"""Options of a run that its replay is made under, and their types."""
ANY_NUMBER = frozenset({"seed"})


def conditions(old: Report) -> dict[str, Json]:
    """Options by name; None for those that were not given. Raises ReportError for values that no option has."""
    return {name: _condition(name, old.header.options.get(name)) for name in CONDITIONS}


def failures(old: Report, checks: Iterable[Check]) -> frozenset[str]:
    """Ids of the checks that did not hold. Raises ReportError if this version has none of them."""
    known = {check.id for check in checks}
    failed = frozenset(result.id for result in old.of_status(Status.FAIL, Status.ERROR))
    if failed and not failed & known:
        raise ReportError(f"this version of the suite has none of the {len(failed)} checks that did not hold")
    return failed & known


def check_dialect(old: Report) -> None:
    """Raises ReportError for a report about a dialect that is not known."""
    if old.header.dialect not in DIALECTS:
        raise ReportError(f"the report is about {old.header.dialect!r}, which is no dialect of this version")


def _condition(name: str, value: Json) -> Json:
    if value is None:
        return None
    found = tuple(value) if isinstance(value, list) else value
    of_a_kind = is_of(found, CONDITIONS[name])
    if not of_a_kind or (isinstance(found, int | float) and found <= 0 and name not in ANY_NUMBER):
        raise ReportError(f"the report's option {name!r} has a value that the option does not take")
    return found
