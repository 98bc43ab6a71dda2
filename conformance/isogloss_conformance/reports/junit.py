"""A report as JUnit XML, for build servers: a suite for each step, a case for each requirement."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from isogloss_conformance.reports.report import Report
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
    suite.set("failures", str(sum(_tag(result) == "failure" for result in results)))
    suite.set("errors", str(sum(_tag(result) == "error" for result in results)))
    suite.set("skipped", str(sum(_tag(result) == "skipped" for result in results)))
    suite.set("time", f"{sum(result.seconds for result in results):.3f}")
    suite.extend(map(_case, results))
    return suite


def _tag(result: Result) -> str | None:
    """The element that says how it ended; a known deviation must not stop a build."""
    return "skipped" if result.deviation else _TAGS.get(result.status)


def _case(result: Result) -> ET.Element:
    place, _, name = result.id.rpartition("/")
    case = ET.Element("testcase", classname=place.replace("/", "."), name=name, time=f"{result.seconds:.3f}")
    tag = _tag(result)
    if tag is not None:
        ending = f"known deviation: {result.deviation}" if result.deviation else f"{result.status}: {result.got}"
        found = ET.SubElement(case, tag, message=_clean(ending.partition("\n")[0]))
        if result.status in (Status.FAIL, Status.ERROR):
            found.text = _clean(f"{result.requirement}\nexpected: {result.expected}\ngot: {result.got}\n{result.curl}")
    return case


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
