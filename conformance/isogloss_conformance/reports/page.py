"""A report as one HTML page that needs nothing else: no script, no font, no picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from isogloss_conformance.reports.report import Report
from isogloss_conformance.results import Result, Status

SIGNS = {
    Status.PASS: "✓",
    Status.FAIL: "✗",
    Status.ERROR: "!",
    Status.UNSUPPORTED: "u",
    Status.SKIP: "?",
    Status.DISABLED: "·",
}
KNOWN_SIGN = "≠"
WORDS = {
    Status.PASS: "holds",
    Status.FAIL: "does not hold",
    Status.ERROR: "could not be looked at",
    Status.UNSUPPORTED: "needs a feature that the server says it lacks",
    Status.SKIP: "not provable here",
    Status.DISABLED: "left out",
}
KEYWORDS = (
    *(
        "required",
        "type",
        "nullable",
        "additionalProperties",
        "const",
        "enum",
        "minimum",
        "exclusiveMinimum",
        "maximum",
    ),
    *("exclusiveMaximum", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "propertyNames"),
)
"""Columns of the matrix."""
MANY = 20
"""Findings from which on a page shows details only when asked."""
_ID_PARTS = 4


def page(report: Report) -> str:
    """The HTML text."""
    cells, rest = _split(report.results)
    template = Template(files(__package__).joinpath("templates/page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(f"{report.header.dialect} at {report.header.base_url}"),
        subtitle=escape(_subtitle(report)),
        tiles="".join(_tile(status, report.counts[status]) for status in SIGNS),
        facts="".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in _facts(report)),
        findings=_findings(report.wrong),
        known=f"<h2>Known deviations</h2>{_findings(report.known)}" if report.known else "",
        legend=_legend(known=bool(report.known)),
        matrix=_matrix(cells),
        tables="".join(_table(step, rest) for step in dict.fromkeys(result.step for result in rest)),
    )


def _legend(*, known: bool) -> str:
    meanings = [f"{_cell(status)} {WORDS[status]}" for status in SIGNS]
    if known:
        meanings.append(f'<span class="cell known">{KNOWN_SIGN}</span> known deviation')
    return " ".join(meanings)


def _split(results: Iterable[Result]) -> tuple[list[Result], list[Result]]:
    """Results that have a place in the matrix, and the others."""
    cells: list[Result] = []
    rest: list[Result] = []
    for result in results:
        in_matrix = result.step == "rules" and _keyword(result) in KEYWORDS
        (cells if in_matrix else rest).append(result)
    return cells, rest


def _keyword(result: Result) -> str:
    return result.id.rsplit("/", 1)[1]


def _subtitle(report: Report) -> str:
    ledger, wrong, known = report.ledger, len(report.wrong), len(report.known)
    verdict = f"{wrong} of {len(report.results)} requirements do not hold" if wrong else "Nothing wrong was found"
    verdict = f"The run was interrupted. {verdict}" if report.interrupted else verdict
    verdict += f", beside {known} known deviations" if known else ""
    return (
        f"{verdict}. Of the {ledger.entries} entries of the document's ledger {ledger.proved} were proved, "
        f"{ledger.unsupported} need a feature that the server lacks, {ledger.unprovable} cannot be decided here, "
        f"{ledger.disabled} were left out."
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    header = report.header
    length = f"{header.context_length} tokens" if header.context_length else "unknown"
    when = f", {header.started}, {report.seconds:.1f} s" if header.started else ""
    options = " ".join(f"--{name}={value}" for name, value in header.options.items())
    return [
        ("model", header.model),
        ("context", length),
        ("features", ", ".join(header.features) or "none found"),
        ("server", header.software or "does not name itself"),
        ("document", header.document),
        ("suite", f"isogloss-conformance {header.suite}{when}"),
        ("options", options or "none"),
    ]


def _tile(status: Status, count: int) -> str:
    return f'<div class="tile {status}"><b>{count}</b>{status}</div>'


def _findings(results: Sequence[Result]) -> str:
    if not results:
        return "<p>Nothing.</p>"
    ordered = sorted(results, key=lambda result: result.level != "core")
    return "".join(_finding(result, opened=len(results) <= MANY) for result in ordered)


def _finding(result: Result, *, opened: bool) -> str:
    parts = (("Expected", result.expected), ("Got", result.got), ("Request", result.curl))
    shown = "".join(f"<p class='soft'>{name}</p><pre>{_text(text)}</pre>" for name, text in parts if text)
    why = f"<p>Known deviation: {escape(result.deviation)}</p>" if result.deviation else ""
    details = f'<details{" open" if opened else ""}><summary class="soft">details</summary>{shown}</details>'
    return (
        f'<section class="finding {_look(result)[0]}" id="{escape(result.id)}"><h3>{escape(result.requirement)}</h3>'
        f'<p><code>{escape(result.id)}</code> <span class="chip">{result.level}</span> '
        f'<span class="chip">{escape(result.source)}</span></p>{why}{details}</section>'
    )


def _text(text: str) -> str:
    """For outside of attributes, where quotes may stand as they are: bodies are full of them."""
    return escape(text, quote=False)


def _matrix(results: Sequence[Result]) -> str:
    rows: dict[str, dict[str, Result]] = {}
    for result in results:
        rows.setdefault(_place(result), {})[_keyword(result)] = result
    columns = [keyword for keyword in KEYWORDS if any(keyword in row for row in rows.values())]
    head = "".join(f"<th>{keyword}</th>" for keyword in columns)
    body = "".join(_row(place, row, columns) for place, row in rows.items())
    return f"<thead><tr><th>field</th>{head}</tr></thead><tbody>{body}</tbody>"


def _place(result: Result) -> str:
    """The field of an id `dialect/operation/place/keyword`."""
    return result.id.split("/", _ID_PARTS - 1)[2]


def _row(place: str, row: dict[str, Result], columns: Sequence[str]) -> str:
    cells = "".join(f"<td>{_linked(row[keyword]) if keyword in row else ''}</td>" for keyword in columns)
    return f"<tr><th>{escape(place)}</th>{cells}</tr>"


def _linked(result: Result) -> str:
    kind, sign, word = _look(result)
    title = escape(f"{result.requirement} ({result.level}; {word}) {result.got[:200]}")
    if result.status in (Status.FAIL, Status.ERROR):
        return f'<a class="cell {kind}" href="#{escape(result.id)}" title="{title}">{sign}</a>'
    return _cell(result.status, title)


def _look(result: Result) -> tuple[str, str, str]:
    """Class, sign and words of a result."""
    if result.deviation:
        return "known", KNOWN_SIGN, f"known deviation: {result.deviation}"
    return result.status, SIGNS[result.status], WORDS[result.status]


def _cell(status: Status, title: str = "") -> str:
    return f'<span class="cell {status}" title="{title}">{SIGNS[status]}</span>'


def _table(step: str, results: Iterable[Result]) -> str:
    """Results of one step that are no cell of the matrix."""
    heading = "Rules that compare fields" if step == "rules" else step.capitalize()
    rows = "".join(_line(result) for result in results if result.step == step)
    return f'<h2>{heading}</h2><div class="scroll"><table><tbody>{rows}</tbody></table></div>'


def _line(result: Result) -> str:
    reason = f'<br><span class="soft">{_text(result.got[:300])}</span>' if result.status is not Status.PASS else ""
    return (
        f"<tr><td>{_linked(result)}</td><td>{escape(result.requirement)}{reason}<br>"
        f'<code class="soft">{escape(result.id)}</code></td><td class="soft">{result.level}</td></tr>'
    )
