"""What a person sees while a run goes on and when it is over."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from isogloss_conformance.checks import Check
from isogloss_conformance.cli import STDERR, hush
from isogloss_conformance.mutants.score import RIGHT, Trial
from isogloss_conformance.reports.compare import Difference
from isogloss_conformance.reports.report import Report
from isogloss_conformance.results import Result, Status
from isogloss_conformance.runner import Runner

COLOURS = {
    Status.PASS: "green",
    Status.FAIL: "red",
    Status.ERROR: "dark_orange",
    Status.UNSUPPORTED: "blue",
    Status.SKIP: "yellow",
    Status.DISABLED: "bright_black",
}


WIDEST = 1000
"""Columns that no table needs."""


class OutputError(Exception):
    """Standard output or standard error takes no more. The text says why, in one line."""


class _Output(Console):
    """One of the two, which may be a closed pipe or a full disk."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as usual. Raises OutputError."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            raise self._error(error.errno) from None

    def on_broken_pipe(self) -> None:
        """Raise OutputError; the usual way is to end the program without a word."""
        raise self._error(errno.EPIPE)

    def _error(self, number: int | None) -> OutputError:
        name = "standard error" if self.stderr else "standard output"
        return OutputError(f"{name} cannot be written: {os.strerror(number or errno.EIO)}")


class Screen:
    """Progress on standard error, outcomes on standard output."""

    def __init__(self) -> None:
        self._out = _Output(highlight=False, soft_wrap=True)
        self._err = _Output(stderr=True, highlight=False, soft_wrap=True)

    def follow(self, runner: Runner) -> list[Result]:
        """Run everything behind a progress bar, and name what is wrong as it is found. Ctrl-C ends it early."""
        columns = (TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        results: list[Result] = []
        with suppress(KeyboardInterrupt), Progress(*columns, console=self._err, transient=True) as progress:
            task = progress.add_task("", total=len(runner.checks))
            for result in runner.run():
                repeated = bool(results) and _is_lost(result) and results[-1].got == result.got
                results.append(result)
                progress.update(task, advance=1, description=result.step)
                if result.status in (Status.FAIL, Status.ERROR) and not repeated:
                    self._out.print(self._finding(result))
        return results

    def _finding(self, result: Result) -> str:
        if result.deviation:
            return f"[magenta]known deviation[/] [bold]{escape(result.id)}[/]\n     {escape(result.deviation)}"
        colour = COLOURS[result.status]
        return f"[{colour}]{result.status}[/] [bold]{escape(result.id)}[/]\n     {escape(result.got[:300])}"

    def plan(self, checks: Iterable[Check]) -> None:
        """The checks of a run that is not made."""
        for check in checks:
            self._out.print(f"{check.step:9} {check.level:8} {escape(check.id)}")

    def summary(self, report: Report) -> None:
        """Counts by step and status, and how complete the run was."""
        table = Table("step", *(f"[{COLOURS[status]}]{status}[/]" for status in Status), box=None, pad_edge=False)
        for step in dict.fromkeys(result.step for result in report.results):
            mine = [result.status for result in report.results if result.step == step]
            table.add_row(step, *(str(mine.count(status) or "") for status in Status))
        wanted = self._out.measure(table, options=self._out.options.update(max_width=WIDEST)).maximum
        if wanted <= self._out.width:
            self._out.print(table)
        else:
            self._list(report)
        if report.known:
            self._out.print(f"[magenta]known deviations[/] among the failures: {len(report.known)}")
        ledger = report.ledger
        self._out.print(
            f"ledger: {ledger.entries} entries, {ledger.proved} proved, {ledger.unsupported} unsupported, "
            f"{ledger.unprovable} unprovable here, {ledger.disabled} left out; {report.seconds:.1f} s"
        )

    def _list(self, report: Report) -> None:
        """The same counts for a narrow terminal."""
        for step in dict.fromkeys(result.step for result in report.results):
            counts = Counter(result.status for result in report.results if result.step == step)
            found = (f"[{COLOURS[status]}]{counts[status]} {status}[/]" for status in Status if counts[status])
            self._out.print(f"{step}: {', '.join(found)}")

    def differences(self, found: Iterable[Difference]) -> None:
        """One line for each difference."""
        for difference in found:
            left, right = (self._status(status) for status in (difference.left, difference.right))
            self._out.print(f"{left} → {right}  [bold]{escape(difference.id)}[/]  {escape(difference.requirement)}")

    def trials(self, made: Iterable[Trial]) -> bool:
        """A line for each trial that went wrong, and the score; whether all went well."""
        all_well, mutants, killed = True, 0, 0
        for trial in made:
            all_well &= trial.well
            if trial.name != RIGHT:
                mutants, killed = mutants + 1, killed + trial.well
            if not trial.well:
                what = "was found at fault" if trial.name == RIGHT else "was not noticed"
                self._out.print(f"[red]{escape(trial.name)}[/] {what} ({escape(trial.killer)}, {trial.looked} checks)")
        self._out.print(f"{killed} of {mutants} mutants noticed")
        return all_well

    def _status(self, status: Status | None) -> str:
        return "[bright_black]absent[/]" if status is None else f"[{COLOURS[status]}]{status}[/]"

    def say(self, text: str) -> None:
        """One line for the person who runs it."""
        self._out.print(escape(text))

    def complain(self, text: str) -> None:
        """One line about what cannot be done; the exit code says so, too, where nobody can read it."""
        try:
            self._err.print(f"[red]isogloss-conformance: {escape(text)}[/]")
        except OutputError:
            hush(STDERR)

    def warn(self, text: str) -> None:
        """One line about what is probably not meant."""
        self._err.print(f"[yellow]isogloss-conformance: {escape(text)}[/]")


def _is_lost(result: Result) -> bool:
    """Whether no answer came. Once a server is gone, all results say so: the first is enough for a person."""
    return result.status is Status.ERROR and result.got.startswith("no answer")
