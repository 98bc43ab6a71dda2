"""The board: what two made-up reports come to, cell by cell."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import isogloss_api
import pytest
from isogloss_conformance.cli import main
from isogloss_conformance.completeness import Completeness
from isogloss_conformance.reports import report
from isogloss_conformance.reports.board import OTHER, Row, area_of, board, rows
from isogloss_conformance.reports.report import Header, Report
from isogloss_conformance.results import Level, Result, Status
from isogloss_spec.ledger import ledger

NOTHING = Completeness(0, 0, 0, 0, 0, 0, ())
PASS, FAIL, ERROR, UNSUPPORTED, SKIP = Status.PASS, Status.FAIL, Status.ERROR, Status.UNSUPPORTED, Status.SKIP


def result(check_id: str, step: str, status: Status, level: Level = "core") -> Result:
    return Result(check_id, step, status, "It holds.", level)


WORSE = (
    result("nim/smoke/models", "smoke", PASS, "extended"),
    result("nim/completions/temperature/maximum", "rules", PASS),
    result("nim/completions/temperature/type", "rules", FAIL),
    result("nim/completions/n/maximum", "rules", ERROR, "extended"),
    result("nim/completions/guided_json.SchemaText/type", "rules", UNSUPPORTED, "extended"),
    result("nim/completions/fault/timeout", "faults", SKIP),
    result("nim/streams/framing", "streams", FAIL, "extended"),
)
BETTER = (
    result("atoma/completions/temperature/maximum", "rules", PASS),
    result("atoma/completions/stop/maxItems", "rules", PASS),
    result("atoma/completions/echo/type", "rules", FAIL, "extended"),
)


class Table(HTMLParser):
    """Texts of the cells, and all links."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[list[str]] = []
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.lines.append([])
        if tag in ("td", "th"):
            self.lines[-1].append("")
        self.links += [value or "" for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        if self.lines and self.lines[-1]:
            self.lines[-1][-1] += data


def write(folder: Path, dialect: str, software: str, results: tuple[Result, ...]) -> None:
    folder.mkdir(parents=True)
    header = Header(dialect, "sha256:0", "http://h", "m", software)
    report.write(Report(header, results, NOTHING, 0.0), folder / f"{dialect}.jsonl")


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    write(tmp_path / "reports/a b/1", "nim", "<i>a/1", WORSE)
    write(tmp_path / "reports/b/2", "atoma", "b/2", BETTER)
    return tmp_path / "reports"


def read(reports: Path) -> Table:
    output = reports / "board.html"
    assert main(["board", str(reports), "-o", str(output)]) == 0
    table = Table()
    table.feed(output.read_text())
    return table


def test_cells_count_what_the_reports_say_and_the_best_comes_first(reports: Path) -> None:
    head, *lines = read(reports).lines
    columns = "server,core,extended,plain calls,length,sampling,output,guides; tools,errors,streams"
    assert [cell.strip() for cell in head] == [name.replace(";", ",") for name in columns.split(",")]
    assert [dict(zip(map(str.strip, head), [cell.strip() for cell in line], strict=True)) for line in lines] == [
        {
            **{"server": "b 2atoma", "core": "2✓", "extended": "1✗", "plain calls": "", "length": "1✓"},
            **{"sampling": "1✓", "output": "1✗", "guides, tools": "", "errors": "", "streams": ""},
        },
        {
            **{"server": "<i>a 1nim", "core": "1✓ 1✗", "extended": "1✓ 1✗ 1! 1u"},
            **{"plain calls": "1✓", "length": "", "sampling": "1✓ 1✗ 1!", "output": "", "guides, tools": "1u"},
            **{"errors": "", "streams": "1✗"},
        },
    ]


def test_it_needs_nothing_else_and_leads_to_the_reports(reports: Path) -> None:
    table = read(reports)
    assert set(table.links) == {"a%20b/1/nim.html", "b/2/atoma.html"}
    assert not table.tags & {"i", "script", "link", "img"}


def test_a_requirement_counts_by_level_too(reports: Path) -> None:
    worse = rows(reports, reports / "board.html")[1]
    assert worse.tally("sampling", "core").counts == {PASS: 1, FAIL: 1}
    assert worse.tally("sampling", "extended").counts == {ERROR: 1}
    assert worse.tally("sampling").share == pytest.approx(1 / 3)
    assert "core: 1 pass, 1 fail; extended: 1 error" in board([worse])


def test_ties_are_ordered_by_name() -> None:
    tied = [Row(name, "1", "nim", "l", BETTER) for name in "cab"]
    assert [row.server for row in sorted(tied, key=lambda row: row.rank)] == ["a", "b", "c"]


@pytest.mark.parametrize("dialect", [name for name in isogloss_api.DOCUMENTS if name != "service"])
def test_every_rule_has_an_area(dialect: str) -> None:
    ids = [entry.id for entry in ledger(isogloss_api.document(dialect)) if entry.kind != "fault"]
    assert not [check_id for check_id in ids if area_of(result(check_id, "rules", PASS)) == OTHER]


def test_a_field_of_another_dialect_counts_all_the_same() -> None:
    assert area_of(result("other/completions/unheard_of/type", "rules", PASS)) == OTHER


def test_a_folder_without_reports_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", str(tmp_path), "-o", str(tmp_path / "b.html")]) == 2
    assert "no report" in capsys.readouterr().err
