"""The reports in the repository: of today's documents, and told of as they are."""

from __future__ import annotations

import re
from pathlib import Path

import isogloss_api
import pytest
from isogloss_conformance.reports.board import Row, board, rows
from isogloss_conformance.reports.reading import read
from isogloss_conformance.reports.report import digest
from isogloss_conformance.results import Result, Status

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "reports"
LINE = re.compile(r"^\| [^|]+ \| \[\w+\]\(\.\./reports/([^)]+)\) \| (.+) \|$", re.MULTILINE)


@pytest.mark.parametrize("dialect", ["nim", "atoma", "acs", "mindie"])
def test_our_own_reports_are_of_the_documents_as_they_are(dialect: str) -> None:
    """After a change of a document: `make reports board`."""
    [path] = (REPORTS / "isogloss").glob(f"*/{dialect}.jsonl")
    assert read(path).header.document == digest(isogloss_api.document(dialect))


def test_the_board_shows_the_reports() -> None:
    assert (REPORTS / "board.html").read_text() == board(rows(REPORTS, REPORTS / "board.html"))


def test_the_table_of_peers_says_what_their_reports_say() -> None:
    told = dict(LINE.findall((ROOT / "docs" / "peers.md").read_text()))
    found = {row.link: row for row in rows(REPORTS, REPORTS / "board.html") if row.server != "isogloss"}
    assert told == {link: " | ".join(figures(row)) for link, row in found.items()}


def figures(row: Row) -> list[str]:
    """How many hold of those that were looked at: by level, then of three steps."""
    levels = [[result for result in row.results if result.level == level] for level in ("core", "extended")]
    steps = [[result for result in row.results if result.step == step] for step in ("effects", "streams", "transport")]
    return [worded(results) for results in (*levels, *steps)]


def worded(results: list[Result]) -> str:
    looked = [result.status for result in results if result.status in (Status.PASS, Status.FAIL, Status.ERROR)]
    return f"{looked.count(Status.PASS)} of {len(looked)}"
