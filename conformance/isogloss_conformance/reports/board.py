"""Many reports as one HTML page that needs nothing else: a row for each server and dialect, a column for each area."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from urllib.parse import quote

from isogloss_conformance.reports.deviations import split
from isogloss_conformance.reports.reading import read
from isogloss_conformance.reports.report import Report
from isogloss_conformance.results import Result, Status

FIELDS: Mapping[str, str] = {
    "prompt": "body model prompt messages suffix user priority add_special_tokens chat_template_kwargs",
    "length": "max_tokens min_tokens stop stop_token_ids include_stop_str_in_output ignore_eos",
    "sampling": (
        "temperature top_p top_k min_p seed presence_penalty frequency_penalty repetition_penalty logit_bias "
        "n best_of use_beam_search"
    ),
    "output": (
        "stream stream_options echo logprobs top_logprobs prompt_logprobs skip_special_tokens return_token_ids "
        "return_tokens_as_token_ids"
    ),
    "guides, tools": (
        "response_format guided_json guided_regex guided_choice guided_grammar guided_decoding_backend "
        "guided_whitespace_pattern nvext tools tool_choice"
    ),
    "activations": "output_residual_stream apply_steering_vectors",
}
"""Areas of the rules step, and the fields of all dialects that belong to them."""
OTHER = "other fields"
STEPS: Mapping[str, str] = {
    "smoke": "plain calls",
    "faults": "errors",
    "effects": "effects",
    "streams": "streams",
    "transport": "transport",
    "fuzz": "fuzz",
}
"""Areas of the other steps."""
AREAS = ("plain calls", *FIELDS, OTHER, *(area for area in STEPS.values() if area != "plain calls"))
"""The columns."""
_AREA_OF_FIELD = {field: area for area, fields in FIELDS.items() for field in fields.split()}
_ID_PARTS = 4
_LOOKED = (Status.PASS, Status.FAIL, Status.ERROR)
_SIGNS = {Status.PASS: "✓", Status.FAIL: "✗", Status.ERROR: "!", Status.UNSUPPORTED: "u"}
"""What a cell counts."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Results by status."""

    counts: Mapping[Status, int]

    @property
    def looked(self) -> int:
        """Requirements with a verdict, or that should have one."""
        return sum(self.counts.get(status, 0) for status in _LOOKED)

    @property
    def share(self) -> float:
        """Part of them that holds, from 0 to 1; 0 where nothing was looked at."""
        return self.counts.get(Status.PASS, 0) / self.looked if self.looked else 0.0

    def worded(self) -> str:
        """For people who point at it."""
        return ", ".join(f"{count} {status}" for status, count in self.counts.items()) or "nothing looked at"


@dataclass(frozen=True, slots=True)
class Row:
    """One server in one dialect."""

    server: str
    version: str
    dialect: str
    link: str
    """Where its page is, from where the board is."""
    results: Sequence[Result]

    def tally(self, area: str | None = None, level: str | None = None) -> Tally:
        """Counts of an area and a level; of all without."""
        chosen = (
            result.status
            for result in self.results
            if area in (None, area_of(result)) and level in (None, result.level)
        )
        found = Counter(chosen)
        return Tally({status: found[status] for status in Status if found[status]})

    @property
    def rank(self) -> tuple[float, float, str, str, str]:
        """Orders rows: what vendors state counts first."""
        core, extended = (self.tally(level=level).share for level in ("core", "extended"))
        return -core, -extended, self.server, self.version, self.dialect


def area_of(result: Result) -> str:
    """The column of a result."""
    if result.step != "rules":
        return STEPS.get(result.step, OTHER)
    field = result.id.split("/", _ID_PARTS - 1)[2].partition(".")[0]
    return _AREA_OF_FIELD.get(field, OTHER)


def rows(folder: Path, output: Path) -> list[Row]:
    """A row for each report below a folder, the best first. Raises ReportError for a file that is none."""
    paths = sorted(folder.rglob("*.jsonl"))
    return sorted((_row(read(path), path, output) for path in paths), key=lambda row: row.rank)


def _row(made: Report, path: Path, output: Path) -> Row:
    server, version = split(made.header.software)
    page = os.path.relpath(path.with_suffix(".html"), output.parent)
    dialect = f"{made.header.dialect} (interrupted)" if made.interrupted else made.header.dialect
    return Row(server or made.header.base_url, version, dialect, quote(page), made.results)


def board(found: Sequence[Row]) -> str:
    """The HTML text."""
    columns = [area for area in AREAS if any(row.tally(area).counts for row in found)]
    template = Template(files(__package__).joinpath("templates/board.html").read_text(encoding="utf-8"))
    return template.substitute(
        subtitle=escape(f"{len({(row.server, row.version) for row in found})} servers, {len(found)} reports"),
        legend=" ".join(f'<span class="{status}">{sign} {status}</span>' for status, sign in _SIGNS.items()),
        head="".join(f'<th scope="col">{escape(name)}</th>' for name in ("core", "extended", *columns)),
        body="".join(_line(row, columns) for row in found),
    )


def _line(row: Row, columns: Iterable[str]) -> str:
    cells = [_cell(row, row.tally(level=level)) for level in ("core", "extended")]
    cells += [_cell(row, row.tally(area), _levels(row, area)) for area in columns]
    name = f"<b>{escape(row.server)}</b> {escape(row.version)}<br>{escape(row.dialect)}"
    return f'<tr><th scope="row"><a href="{escape(row.link)}">{name}</a></th>{"".join(cells)}</tr>'


def _levels(row: Row, area: str) -> str:
    return "; ".join(f"{level}: {row.tally(area, level).worded()}" for level in ("core", "extended"))


def _cell(row: Row, tally: Tally, title: str = "") -> str:
    shown = [
        f'<span class="{status}">{tally.counts[status]}{sign}</span>'
        for status, sign in _SIGNS.items()
        if status in tally.counts
    ]
    if not shown:
        return "<td></td>"
    share = f' style="--share:{tally.share:.0%}"' if tally.looked else ' class="none"'
    title = escape(title or tally.worded())
    return f'<td{share}><a href="{escape(row.link)}" title="{title}">{" ".join(shown)}</a></td>'
