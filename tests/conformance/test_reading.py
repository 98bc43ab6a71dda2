"""Whatever a file holds, it is a report or one clear line says why it is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isogloss_conformance.cli import main
from isogloss_conformance.completeness import Completeness
from isogloss_conformance.reports import report
from isogloss_conformance.reports.board import board, rows
from isogloss_conformance.reports.junit import junit
from isogloss_conformance.reports.page import page
from isogloss_conformance.reports.reading import ReportError, read
from isogloss_conformance.reports.report import Header, Report
from isogloss_conformance.results import Result, Status

Json = Any
Edit = Callable[[list[dict[str, Json]]], None]
UNREACHABLE = "http://127.0.0.1:9/nim"
RESULTS = (
    Result("nim/completions/n/maximum", "rules", Status.FAIL, "'n' must be <128>.", got="a\u2028b\x85c"),
    Result("nim/effects/n", "effects", Status.PASS, "n gives that many choices.", "extended"),
)
HEADER = Header("nim", "sha256:0", UNREACHABLE, "m", features=("best_of",), options={"flood": 7})
REPORT = Report(HEADER, RESULTS, Completeness(2, 2, 0, 0, 0, 0, ("x",)), 1.5)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    report.write(REPORT, tmp_path / "r.jsonl")
    return tmp_path / "r.jsonl"


def edited(path: Path, edit: Edit) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    edit(lines)
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def setting(number: int, **members: Json) -> Edit:
    return lambda lines: lines[number].update(members)


def lacking(number: int, name: str) -> Edit:
    return lambda lines: lines[number].pop(name)


def test_line_separators_in_answers_do_no_harm(good: Path) -> None:
    assert read(good) == REPORT


def test_members_of_later_versions_are_left_out(good: Path) -> None:
    edited(good, setting(0, later=1))
    assert read(good) == REPORT


NO_FILES = (
    b"",
    b"\n\n",
    b"{}",
    b"[]",
    b"null",
    b"x",
    b"\x1f\x8b\x00",
    b"<html></html>",
    b'{"kind": "header", "format": 99}\n{"kind": "footer"}',
    b'{"kind": "header", "format": 1}\n{"kind": "footer", "seconds": 1, "ledger": {}}',
    b'{"kind": "header", "format": 1, "format": ' + b"9" * 6000 + b"}",
    b"[" * 100_000,
)
EDITS: dict[str, Edit] = {
    "no header": lambda lines: lines.pop(0),
    "no footer": lambda lines: lines.pop(),
    "two headers": lambda lines: lines.insert(0, lines[0]),
    "two footers": lambda lines: lines.append(lines[-1]),
    "a foreign line": lambda lines: lines.insert(1, {"kind": "other"}),
    "a line without a kind": lambda lines: lines.insert(1, {"id": "a"}),
    "no dialect": lacking(0, "dialect"),
    "the model is a number": setting(0, model=5),
    "no address": setting(0, base_url=""),
    "features is a text": setting(0, features="best_of"),
    "features holds numbers": setting(0, features=[1]),
    "options is a list": setting(0, options=[]),
    "a length is a text": setting(0, context_length="4096"),
    "the format is true": setting(0, format=True),
    "no id": lacking(1, "id"),
    "an id without parts": setting(1, id="n"),
    "the id is a list": setting(1, id=["nim/completions/n/maximum"]),
    "an unknown status": setting(1, status="great"),
    "the status is an object": setting(1, status={}),
    "an unknown level": setting(1, level="other"),
    "got is null": setting(1, got=None),
    "got is half a pair": setting(1, got="\ud800"),
    "seconds is a text": setting(1, seconds="1"),
    "seconds has no end": setting(1, seconds=float("inf")),
    "no ledger": lacking(-1, "ledger"),
    "a ledger of texts": setting(-1, ledger={**report.asdict(REPORT.ledger), "entries": "2"}),
    "nothing is missing": setting(-1, ledger={**report.asdict(REPORT.ledger), "missing": None}),
    "no time": lacking(-1, "seconds"),
}


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that was said."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("isogloss-conformance: ")
    assert said.err.count("\n") == 1
    return said.err


def commands(path: Path) -> list[list[str]]:
    output = str(path.parent / "b.html")
    return [["replay", str(path)], ["compare", str(path), str(path)], ["board", str(path.parent), "-o", output]]


def all_refuse(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands(path):
        assert main(command) == 2
        assert str(path) in told(capsys)


@pytest.mark.parametrize("content", NO_FILES, ids=range(len(NO_FILES)))
def test_other_files_are_no_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    all_refuse(path, capsys)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_edited_reports_are_refused(good: Path, capsys: pytest.CaptureFixture[str], edit: Edit) -> None:
    edited(good, edit)
    all_refuse(good, capsys)


def test_a_report_that_is_cut_short_says_so(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = good.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        good.write_bytes(whole[:length])
        with pytest.raises(ReportError, match="is no report"):
            read(good)
    good.write_bytes(b"\n".join(whole.split(b"\n")[:2]))
    with pytest.raises(ReportError, match="cut short"):
        read(good)


def test_files_that_are_not_there_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "a\0b"):
        for command in commands(path)[:2]:
            assert main(command) == 2
            told(capsys)


@pytest.mark.parametrize(
    "options",
    [
        {"flood": "many"},
        {"flood": -1},
        {"features": ["a"]},
        {"features": "no_such_feature"},
        {"set": "maxIterTimes=1"},
        {"set": [1]},
        {"set": ["nonsense"]},
        {"patience": "long"},
        {"patience": -1},
        {"max_total_tokens": 1.5},
        {"seed": "x"},
    ],
    ids=str,
)
def test_a_replay_refuses_options_that_no_run_has(
    good: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Json]
) -> None:
    edited(good, setting(0, options=options))
    assert main(["replay", str(good)]) == 2
    assert "cannot be reached" not in told(capsys)


@pytest.mark.parametrize(
    "edit", [setting(0, dialect="other"), setting(0, base_url="nonsense"), setting(1, id="nim/completions/gone/type")]
)
def test_a_replay_of_what_is_not_there_any_more_proves_nothing(
    good: Path, capsys: pytest.CaptureFixture[str], edit: Edit
) -> None:
    edited(good, edit)
    assert main(["replay", str(good)]) == 2
    assert "cannot be reached" not in told(capsys)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_can_be_read_can_be_shown(tmp_path: Path, data: st.DataObject) -> None:
    """Any member of any line becomes anything: refused, or shown in every form."""
    path = tmp_path / "r.jsonl"
    report.write(REPORT, path)

    def edit(lines: list[dict[str, Json]]) -> None:
        line = data.draw(st.sampled_from(lines))
        line[data.draw(st.sampled_from(sorted(line)))] = data.draw(VALUES)

    edited(path, edit)
    try:
        found = read(path)
    except ReportError:
        return
    assert page(found)
    assert junit(found)
    assert board(rows(tmp_path, tmp_path / "b.html"))
