"""Two reports side by side: where two servers, or two versions of one, differ."""

from __future__ import annotations

from dataclasses import dataclass

from isogloss_conformance.reports.report import Report
from isogloss_conformance.results import Result, Status


@dataclass(frozen=True, slots=True)
class Difference:
    """One requirement of which two reports say different things; None where a report is silent."""

    id: str
    requirement: str
    left: Status | None
    right: Status | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two reports say of the requirements that both of them looked at."""

    notes: tuple[str, ...]
    """What keeps them from being compared in whole, in words."""
    compared: int
    differences: tuple[Difference, ...]
    """In the order of the left report, then what only the right one has."""


def comparison(left: Report, right: Report) -> Comparison:
    """Requirements by id; of two dialects, only those that both have, by what stands behind the dialect's name.

    What the options of either run left out is not compared.
    """
    dialects = [side.header.dialect for side in (left, right)]
    alike = dialects[0] == dialects[1]
    ours, theirs = (_by_name(side, whole=alike) for side in (left, right))
    names = [name for name in dict.fromkeys((*ours, *theirs)) if alike or (name in ours and name in theirs)]
    chosen = [name for name in names if not _left_out(ours.get(name)) and not _left_out(theirs.get(name))]
    notes = [
        *([] if alike else [_dialects(dialects, len(names), len(ours), len(theirs))]),
        *(_document(left, right) if alike else ()),
        *([f"{len(names) - len(chosen)} that one of the runs left out are not compared."] if chosen != names else ()),
    ]
    found = (_difference(name, ours.get(name), theirs.get(name)) for name in chosen)
    return Comparison(tuple(notes), len(chosen), tuple(one for one in found if one.left != one.right))


def _dialects(names: list[str], both: int, left: int, right: int) -> str:
    return (
        f"The dialects differ: {names[0]} and {names[1]}. {both} requirements of one name are compared, each with the "
        f"bounds of its own dialect; {left - both} are only in {names[0]}, {right - both} only in {names[1]}."
    )


def _document(left: Report, right: Report) -> list[str]:
    same = left.header.document == right.header.document
    return [] if same else ["The dialect's document has changed between the reports."]


def _difference(name: str, ours: Result | None, theirs: Result | None) -> Difference:
    left, right = (None if side is None else side.status for side in (ours, theirs))
    known = ours or theirs
    return Difference(name, "" if known is None else known.requirement, left, right)


def _left_out(result: Result | None) -> bool:
    return result is not None and result.status is Status.DISABLED


def _by_name(report: Report, *, whole: bool) -> dict[str, Result]:
    """Results by id, with the dialect or without it."""
    return {result.id if whole else result.id.partition("/")[2]: result for result in report.results}
