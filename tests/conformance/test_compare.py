"""Two reports side by side: of one dialect in whole, of two where they have something in common."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from isogloss_conformance.cli import main
from isogloss_conformance.completeness import Completeness
from isogloss_conformance.reports import report
from isogloss_conformance.reports.compare import comparison
from isogloss_conformance.reports.report import Header, Report
from isogloss_conformance.results import Result, Status

NOTHING = Completeness(0, 0, 0, 0, 0, 0, ())
OPERATION = {"nim": "completions", "atoma": "completions", "mindie": "chat.completions"}


def made(dialect: str, document: str = "sha256:0", **statuses: Status) -> Report:
    """A report with a rule of the main operation, or an effect, for each name."""
    header = Header(dialect, document, "http://h", "m")
    results = tuple(
        Result(
            f"{dialect}/effects/{name}" if name == "n" else f"{dialect}/{OPERATION[dialect]}/{name}/type",
            "",
            status,
            name,
        )
        for name, status in statuses.items()
    )
    return Report(header, results, NOTHING, 1.0)


P, F, D = Status.PASS, Status.FAIL, Status.DISABLED


def test_only_what_differs_is_named() -> None:
    found = comparison(made("nim", a=P, b=F, c=P), made("nim", a=P, b=P, d=P))
    assert [(one.id.split("/")[2], one.left, one.right) for one in found.differences] == [
        ("b", F, P),
        ("c", P, None),
        ("d", None, P),
    ]
    assert (found.notes, found.compared) == ((), 4)
    assert found.differences[0].requirement == "b"


def test_a_report_does_not_differ_from_itself() -> None:
    assert comparison(made("nim", a=P, b=F), made("nim", a=P, b=F)).differences == ()


def test_another_version_of_the_document_is_named() -> None:
    (note,) = comparison(made("nim", a=P), made("nim", document="sha256:1", a=P)).notes
    assert "document has changed" in note


def test_what_one_run_left_out_is_not_compared() -> None:
    found = comparison(made("nim", a=P, b=P, n=F), made("nim", a=D, b=F, n=D))
    assert [one.id for one in found.differences] == ["nim/completions/b/type"]
    assert (found.compared, found.notes) == (1, ("2 that one of the runs left out are not compared.",))


def test_of_two_dialects_only_what_both_have_is_compared() -> None:
    found = comparison(made("nim", a=P, b=P, n=P), made("atoma", b=F, c=P, n=P))
    assert [(one.id, one.left, one.right) for one in found.differences] == [("completions/b/type", P, F)]
    (note,) = found.notes
    assert note.startswith("The dialects differ: nim and atoma. 2 requirements")
    assert note.endswith("1 are only in nim, 1 only in atoma.")


@pytest.mark.parametrize(
    ("left", "right", "code", "said"),
    [
        (made("nim", n=P), made("mindie", n=F), 1, "1 difference(s) in 1 requirements"),
        (made("nim", n=P, a=P), made("mindie", n=P, a=F), 0, "0 difference(s) in 1 requirements"),
        (made("nim", a=P), made("mindie", a=P), 2, "nothing to compare. The dialects differ"),
        (made("nim"), made("nim"), 2, "nothing to compare"),
    ],
)
def test_the_program_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left: Report, right: Report, code: int, said: str
) -> None:
    for name, one in (("left", left), ("right", right)):
        report.write(replace(one), tmp_path / name)
    assert main(["compare", str(tmp_path / "left"), str(tmp_path / "right")]) == code
    assert said in "".join(capsys.readouterr())
