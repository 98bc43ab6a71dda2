"""The report of one run: what was tested, what came out. Kept as JSON lines."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from isogloss_conformance.completeness import Completeness
from isogloss_conformance.results import Result, Status
from isogloss_conformance.session import Session

Json = Any
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Header:
    """What was tested, and with what."""

    dialect: str
    document: str
    """Digest of the document, so that reports of different documents are not taken for equal."""
    base_url: str
    model: str
    software: str = ""
    context_length: int | None = None
    features: tuple[str, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
    """As given, without keys."""
    suite: str = ""
    started: str = ""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Report:
    """One run."""

    header: Header
    results: tuple[Result, ...]
    ledger: Completeness
    seconds: float
    interrupted: bool = False
    """Whether somebody ended the run before all checks were made."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of results by status, all statuses."""
        return {**dict.fromkeys(Status, 0), **Counter(result.status for result in self.results)}

    def of_status(self, *statuses: Status) -> list[Result]:
        """Results with one of these statuses."""
        return [result for result in self.results if result.status in statuses]

    @property
    def wrong(self) -> list[Result]:
        """What failed or could not be looked at, known deviations left out."""
        return [result for result in self.of_status(Status.FAIL, Status.ERROR) if not result.deviation]

    @property
    def known(self) -> list[Result]:
        """What failed as it is known to."""
        return [result for result in self.results if result.deviation]

    def stable(self) -> Report:
        """Without what differs between two equal runs: times, and answers that nothing is wrong with."""
        return Report(
            replace(self.header, started=""), tuple(map(_stable, self.results)), self.ledger, 0.0, self.interrupted
        )


def _stable(result: Result) -> Result:
    fine = result.status in (Status.PASS, Status.UNSUPPORTED)
    return replace(result, seconds=0.0, got="" if fine else result.got)


def header(session: Session, options: Mapping[str, Json]) -> Header:
    """The header of a run that begins now."""
    facts = session.facts
    return Header(
        dialect=session.dialect,
        document=digest(session.document),
        base_url=session.client.base_url,
        model=facts.model,
        software=facts.software,
        context_length=facts.context_length,
        features=tuple(sorted(facts.features)),
        options=dict(options),
        suite=version("isogloss"),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def digest(document: Mapping[str, Json]) -> str:
    """SHA-256 of a document's canonical JSON."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def write(report: Report, path: Path) -> None:
    """One JSON object a line: the header, each result, the footer."""
    footer = {"counts": report.counts, "ledger": asdict(report.ledger), "seconds": report.seconds}
    if report.interrupted:
        footer["interrupted"] = True
    lines: Iterable[dict[str, Json]] = (
        {"kind": "header", **asdict(report.header)},
        *({"kind": "result", **asdict(result)} for result in report.results),
        {"kind": "footer", **footer},
    )
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
