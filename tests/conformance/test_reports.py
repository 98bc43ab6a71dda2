"""Reports say what was found, and nothing that is secret."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import cast
from xml.etree import ElementTree as ET

import pytest
from isogloss_conformance.completeness import Completeness, completeness
from isogloss_conformance.console import Screen
from isogloss_conformance.reports import badge, junit, page, report
from isogloss_conformance.reports.reading import read
from isogloss_conformance.reports.report import Header, Report
from isogloss_conformance.results import Result, Status
from isogloss_conformance.runner import Runner

HEADER = Header("nim", "sha256:0", "http://h/nim", "m", features=("best_of",), suite="0", started="now")
N = "nim/completions/n/maximum"
RESULTS = (
    Result("nim/completions/n/type", "rules", Status.PASS, "'n' must be an integer."),
    Result(N, "rules", Status.FAIL, "'n' must be <128>.", "core", "seed", "422", "200 \x00 <b>", "curl 'x' & y"),
    Result("nim/completions/echo/not_streamed", "rules", Status.UNSUPPORTED, "echo", "extended"),
    Result("nim/completions/fault/timeout", "faults", Status.SKIP, "timeout", got="unprovable: patience"),
)
REPORT = Report(HEADER, RESULTS, Completeness(4, 2, 1, 1, 0, 0, ()), 1.5)


def test_lines_hold_everything(tmp_path: Path) -> None:
    report.write(REPORT, tmp_path / "r.jsonl")
    assert read(tmp_path / "r.jsonl") == REPORT
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 6


def test_junit_counts_and_can_be_read() -> None:
    root = ET.fromstring(junit.junit(REPORT))
    rules = root.find("testsuite[@name='rules']")
    assert rules is not None
    assert (rules.get("tests"), rules.get("failures"), rules.get("skipped")) == ("3", "1", "1")
    failure = rules.find("testcase[@name='maximum']/failure")
    assert failure is not None
    assert "curl 'x' & y" in (failure.text or "")


def test_badge() -> None:
    assert badge.badge(REPORT)["message"] == "1 of 2 hold"
    assert badge.badge(REPORT)["color"] == "red"


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.ids |= {given["id"] or ""} if "id" in given else set()
        self.links |= {given["href"] or ""} if "href" in given else set()
        self.outside += [name for name in given if name in ("src", "onclick", "srcset")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_stands_alone_and_leads_to_the_failure() -> None:
    text = page.page(REPORT)
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert reader.links == {f"#{N}"}
    assert N in reader.ids
    assert reader.outside == []
    assert "<script" not in text
    assert "http" not in text.replace(HEADER.base_url, "")
    assert "&lt;b&gt;" in text
    assert "curl 'x' &amp; y" in text


def test_an_entry_without_a_result_is_missing() -> None:
    class Entry:
        id = "nim/completions/x/type"

    assert completeness([Entry()], RESULTS).missing == ("nim/completions/x/type",)  # type: ignore[list-item]


def test_lost_answers_are_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Once a server is gone, hundreds of results say the same."""
    lost = [
        Result(f"nim/completions/n/{number}", "rules", Status.ERROR, "", got="no answer: gone") for number in range(5)
    ]

    class Fake:
        checks = lost

        def run(self) -> list[Result]:
            return lost

    assert Screen().follow(cast("Runner", Fake())) == lost
    assert capsys.readouterr().out.count("no answer: gone") == 1
