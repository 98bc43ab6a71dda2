"""Figures, and how they are shown: tables for people, JSON for everyone else."""

from __future__ import annotations

import os
import platform
import shlex
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

import orjson
from rich import box
from rich.console import Console
from rich.table import Table


def _machine() -> dict[str, str]:
    packages = {name: version(name) for name in ("starlette", "uvicorn", "pydantic", "connexion")}
    return {
        "cpu": _processor(),
        "cpus": str(len(os.sched_getaffinity(0))),
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **packages,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


@dataclass(frozen=True, slots=True)
class Spread:
    """The same figure from several rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.low)}-{_short(self.high)})"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: what was measured, and each figure by its name and unit."""

    name: str
    figures: dict[str, Spread]


@dataclass(frozen=True, slots=True)
class Section:
    """One table."""

    title: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Report:
    """One run: its tables, and what is needed to run it again."""

    kind: str
    settings: dict[str, object]
    sections: list[Section]
    command: str = field(default_factory=lambda: shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]))
    machine: dict[str, str] = field(default_factory=_machine)

    def show(self, console: Console) -> None:
        """Print the tables."""
        for section in self.sections:
            console.print(_table(section))
        console.print(", ".join(f"{name} {value}" for name, value in self.machine.items()), style="dim")
        console.print(f"{self.command}   median (lowest to highest)", style="dim")

    def write(self, path: Path) -> None:
        """Write the run as JSON."""
        path.write_bytes(orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2))


def spread(values: Iterable[float]) -> Spread:
    """Median, lowest and highest of one figure. Raises StatisticsError if there are no values."""
    ordered = sorted(values)
    return Spread(statistics.median(ordered), ordered[0], ordered[-1])


def ratio(values: Sequence[float], to: Sequence[float]) -> Spread:
    """How many times as large, round by round: what slows a whole round down cancels out."""
    return spread(value / other for value, other in zip(values, to, strict=True))


def _table(section: Section) -> Table:
    names = list(dict.fromkeys(name for row in section.rows for name in row.figures))
    table = Table("", box=box.SIMPLE, title=section.title, title_justify="left")
    for name in names:
        table.add_column(name, justify="right")
    for row in section.rows:
        table.add_row(row.name, *(str(row.figures.get(name, "")) for name in names))
    return table


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
