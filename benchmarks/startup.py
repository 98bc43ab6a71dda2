"""Seconds from the start of the process to the first 200 for readiness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.processes import running, serve_command
from benchmarks.report import Report, Row, Section, Spread, spread


@dataclass(frozen=True, slots=True)
class StartupSettings:
    """What is started, and how often."""

    engines: Sequence[str] = ("scripted", "torch")
    rounds: int = 5


def measure_startup(settings: StartupSettings) -> Report:
    """Start and stop our server on each engine in turn. The first start of each, which may have to convert the model
    and finds nothing in the disk's cache, is a figure of its own."""
    times: dict[str, list[float]] = {engine: [] for engine in settings.engines}
    for _ in range(settings.rounds + 1):
        for engine, seconds in times.items():
            with running(serve_command(engine)) as server:
                seconds.append(server.startup_s)
    rows = [Row(engine, _figures(seconds)) for engine, seconds in times.items()]
    return Report("startup", asdict(settings), [Section("Start to ready", rows)])


def _figures(seconds: list[float]) -> dict[str, Spread]:
    first, *later = seconds
    return {"seconds": spread(later), "first start": spread([first])}
