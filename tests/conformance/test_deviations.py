"""Known deviations: shown as such, and no reason to fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import isogloss_api
import pytest
from isogloss_conformance.cli import main
from isogloss_conformance.client import Client
from isogloss_conformance.completeness import Completeness
from isogloss_conformance.reports import badge, deviations, junit, page, report
from isogloss_conformance.reports.deviations import Deviation, DeviationsError, known, parsed
from isogloss_conformance.reports.reading import read
from isogloss_conformance.reports.report import Header, Report
from isogloss_conformance.results import Result, Status
from isogloss_conformance.runner import Runner
from isogloss_conformance.session import Facts, Session
from support.server import Server

N = "nim/completions/n/maximum"
FAILED = Result(N, "rules", Status.FAIL, "'n' must be small.", got="200", deviation="it takes <any> n")
LIST = [
    Deviation(N, "vllm", "every version does"),
    Deviation("a", "vLLM", "old", version="0.9", link="https://h/1"),
    Deviation("b", "other", "no"),
]


@pytest.mark.parametrize(
    ("software", "found"),
    [
        ("vllm", {N: "every version does"}),
        ("vLLM/0.9", {N: "every version does", "a": "old (https://h/1)"}),
        ("VLLM/0.9 (linux)", {N: "every version does", "a": "old (https://h/1)"}),
        ("vllm/0.9.1", {N: "every version does"}),
        ("vllm-fork", {}),
        ("", {}),
    ],
)
def test_server_and_version_must_match(software: str, found: dict[str, str]) -> None:
    assert known(LIST, software) == found


def test_a_list_from_yaml() -> None:
    assert parsed("- {id: x, server: s, version: null, reason: r}") == [Deviation("x", "s", "r")]
    assert parsed("[]") == []


@pytest.mark.parametrize(
    "text", ["{", "", "- x", "- {id: x, server: s}", "- {id: x, server: s, reason: r, version: 1.2}", "- {a: b}"]
)
def test_a_malformed_list_is_refused(text: str) -> None:
    with pytest.raises(DeviationsError, match="cannot be read"):
        parsed(text)


def test_the_list_that_ships_names_checks_that_exist() -> None:
    ids = set()
    for dialect in isogloss_api.DOCUMENTS:
        if dialect != "service":
            session = Session(isogloss_api.document(dialect), Client("http://127.0.0.1:9"), Facts("m"))
            ids |= {check.id for check in Runner(session).checks}
    assert N in ids
    assert {deviation.id for deviation in deviations.listed()} <= ids


def made(*results: Result) -> Report:
    return Report(Header("nim", "sha256:0", "http://h/nim", "m"), results, Completeness(1, 1, 0, 0, 0, 0, ()), 1.0)


def test_every_report_shows_it_as_known(tmp_path: Path) -> None:
    found = made(FAILED)
    report.write(found, tmp_path / "r")
    line = json.loads((tmp_path / "r").read_text().splitlines()[1])
    assert (line["status"], line["deviation"]) == ("fail", "it takes <any> n")
    assert read(tmp_path / "r") == found
    text = page.page(found)
    assert "Nothing wrong was found, beside 1 known" in text
    assert "Known deviation: it takes &lt;any&gt; n" in text
    assert 'class="cell known"' in text
    assert 'failures="0" errors="0" skipped="1"' in junit.junit(found)
    assert "known deviation: it takes" in junit.junit(found)
    assert badge.badge(found)["message"] == "0 of 1 hold"


def test_without_deviations_no_report_speaks_of_them() -> None:
    found = made(replace(FAILED, deviation=""))
    assert "nown deviation" not in page.page(found)
    assert 'failures="1" errors="0" skipped="0"' in junit.junit(found)


def test_a_known_deviation_fails_only_strict_runs(
    scripted: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    check = "atoma/completions/n/minimum"
    monkeypatch.setattr(deviations, "listed", lambda: [Deviation(check, "s", "of old", version="1")])
    place = f"run --base-url {scripted.url}/nim --dialect atoma --features suffix".split()
    only = ["--only", check]
    assert main([*place, *only]) == 1
    assert "fail" in capsys.readouterr().out
    named = ["--server", "s", "--server-version", "1"]
    assert main([*place, *only, *named, "--report-dir", str(tmp_path)]) == 0
    assert "known deviation atoma/completions/n/minimum" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "atoma.jsonl")]) == 0
    assert main([*place, *only, *named, "--strict"]) == 1
    assert main([*place, *only, "--server", "s", "--server-version", "2"]) == 1
    assert main([*place, "--only", "atoma/completions/n/", *named]) == 1


def test_stable_reports_of_equal_runs_are_equal(scripted: Server, tmp_path: Path) -> None:
    run = f"run --base-url {scripted.url}/nim --dialect nim --only nim/completions/n/ --stable --report-dir".split()
    first, second = tmp_path / "a", tmp_path / "b"
    assert main([*run, str(first)]) == main([*run, str(second)]) == 0
    for file in first.iterdir():
        assert file.read_bytes() == (second / file.name).read_bytes()
