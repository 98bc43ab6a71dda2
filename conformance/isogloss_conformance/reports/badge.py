"""A report as a badge, in the JSON that shields.io takes as an endpoint."""

from __future__ import annotations

from typing import Any

from isogloss_conformance.reports.report import Report
from isogloss_conformance.results import Status

Json = Any


def badge(report: Report) -> dict[str, Json]:
    """Label, message and colour: how many of the looked-at requirements hold."""
    counts = report.counts
    looked = counts[Status.PASS] + counts[Status.FAIL] + counts[Status.ERROR]
    return {
        "schemaVersion": 1,
        "label": f"isogloss {report.header.dialect}",
        "message": f"{counts[Status.PASS]} of {looked} hold" + (", interrupted" if report.interrupted else ""),
        "color": _colour(counts[Status.PASS], looked),
    }


def _colour(passed: int, looked: int) -> str:
    if looked == 0:
        return "lightgrey"
    if passed == looked:
        return "brightgreen"
    return "yellow" if passed / looked > _NEARLY else "red"


_NEARLY = 0.9
