"""A report as JUnit XML, for build servers: a suite for each step, a case for each requirement."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from isogloss_conformance.report import Report
from isogloss_conformance.results import Result, Status

_TAGS = {
    Status.FAIL: "failure",
    Status.ERROR: "error",
    Status.SKIP: "skipped",
    Status.UNSUPPORTED: "skipped",
    Status.DISABLED: "skipped",
}
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""


def junit(report: Report) -> str:
    """The XML text."""
    root = ET.Element("testsuites", name=f"isogloss-conformance {report.header.dialect}")
    for step in dict.fromkeys(result.step for result in report.results):
        root.append(_suite(step, [result for result in report.results if result.step == step]))
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _suite(step: str, results: list[Result]) -> ET.Element:
    suite = ET.Element("testsuite", name=step, tests=str(len(results)))
    suite.set("failures", _count(results, Status.FAIL))
    suite.set("errors", _count(results, Status.ERROR))
    suite.set("skipped", _count(results, Status.SKIP, Status.UNSUPPORTED, Status.DISABLED))
    suite.set("time", f"{sum(result.seconds for result in results):.3f}")
    suite.extend(map(_case, results))
    return suite


def _count(results: Iterable[Result], *statuses: Status) -> str:
    return str(sum(result.status in statuses for result in results))


def _case(result: Result) -> ET.Element:
    place, _, name = result.id.rpartition("/")
    case = ET.Element("testcase", classname=place.replace("/", "."), name=name, time=f"{result.seconds:.3f}")
    if result.status in _TAGS:
        message = _clean(result.got.partition("\n")[0])
        found = ET.SubElement(case, _TAGS[result.status], message=f"{result.status}: {message}")
        if result.status in (Status.FAIL, Status.ERROR):
            found.text = _clean(f"{result.requirement}\nexpected: {result.expected}\ngot: {result.got}\n{result.curl}")
    return case


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
