"""The commands: `run`, `replay`, `compare`, `board`, `mutants`.

Exit codes: 0 all is well, 1 something does not hold (or differs), 2 the suite could not do its work, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import ssl
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import isogloss_api

from isogloss_conformance.cli import FAILED, INTERRUPTED, hush
from isogloss_conformance.client import AddressError, Client
from isogloss_conformance.completeness import completeness
from isogloss_conformance.console import OutputError, Screen
from isogloss_conformance.discover import discover, features_of
from isogloss_conformance.forecast import server_limits
from isogloss_conformance.mutants.score import Upstream, trials
from isogloss_conformance.obstacles import DIALECTS, DiscoveryError, Obstacles
from isogloss_conformance.repeating import check_dialect, conditions, failures
from isogloss_conformance.reports import badge, board, compare, deviations, junit, page, report
from isogloss_conformance.reports.deviations import DeviationsError
from isogloss_conformance.reports.reading import ReportError, read
from isogloss_conformance.reports.report import Report
from isogloss_conformance.results import Status
from isogloss_conformance.runner import STEPS, Runner
from isogloss_conformance.session import Facts, Options, Session

Json = Any
KEY_VARIABLE = "ISOGLOSS_CONFORMANCE_KEY"
SECRET = frozenset({"api_key", "header"})
"""Options whose values no report shows."""
UNSAID = frozenset({"run", "base_url", "dialect", "report_dir", "report", "server", "server_version"})
"""What is in the header by another name, or says nothing about the run."""


class UsageError(Exception):
    """The options cannot be followed. The text says why, in one line."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Raises KeyboardInterrupt where there is nothing to show yet."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (UsageError, DiscoveryError, ReportError, DeviationsError) as error:
        Screen().complain(str(error))
        return FAILED
    except OutputError as error:
        hush()
        Screen().complain(str(error))
        return FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="isogloss-conformance", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--version", action="version", version=f"isogloss-conformance {version('isogloss')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    once = commands.add_parser("run", help="Test a server.", allow_abbrev=False)
    once.set_defaults(run=_run)
    once.add_argument("--base-url", required=True, help="Where the dialect's /v1 stands, without the /v1.")
    once.add_argument("--dialect", required=True, choices=DIALECTS)
    _add_server(once)
    _add_selection(once)
    once.add_argument("--report-dir", type=Path, metavar="DIR", help="Folder for the reports.")
    once.add_argument("--stable", action="store_true", help="Reports without times: equal for equal servers.")
    again = commands.add_parser("replay", help="Test again what a report says does not hold.", allow_abbrev=False)
    again.set_defaults(run=_replay)
    again.add_argument("report", type=Path, metavar="REPORT", help="The JSON lines of a run.")
    again.add_argument("--base-url", help="Another server than that of the report.")
    _add_server(again)
    both = commands.add_parser("compare", help="Show where two reports differ.", allow_abbrev=False)
    both.set_defaults(run=_compare)
    both.add_argument("left", type=Path)
    both.add_argument("right", type=Path)
    all_together = commands.add_parser("board", help="Show many reports on one page.", allow_abbrev=False)
    all_together.set_defaults(run=_board)
    all_together.add_argument("reports", type=Path, metavar="DIR", help="Folder with reports, at any depth.")
    all_together.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="The page to write.")
    proof = commands.add_parser("mutants", help="Prove that the suite notices wrong servers.", allow_abbrev=False)
    proof.set_defaults(run=_mutants)
    proof.add_argument("--base-url", required=True, help="The root of our own server, started as `make mutants` does.")
    _add_key(proof)
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("server")
    group.add_argument("--server", metavar="NAME", help="Name of the server. Default: its Server header.")
    group.add_argument("--server-version", metavar="V", help="Its version. Default: as in the Server header.")
    group.add_argument("--model", help="Default: the first that /v1/models lists.")
    _add_key(group)
    group.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help="Sent with every request.")
    group.add_argument("--ca", metavar="FILE", help="Certificates of authorities to trust.")
    group.add_argument("--cert", metavar="FILE", help="Client certificate with its key.")
    group.add_argument("--timeout", type=_positive, default=60.0, metavar="S", help="Seconds for a whole answer.")
    group.add_argument("--features", metavar="A,B", help="What the server offers. Default: found out by trying.")
    group.add_argument("--max-total-tokens", type=_amount, metavar="N", help="The context length. Default: as listed.")
    group.add_argument("--set", action="append", default=[], metavar="NAME=N", help="A limit of the server by name.")
    group.add_argument("--patience", type=_positive, metavar="S", help="Wait so long for a timeout.")
    group.add_argument("--flood", type=_amount, metavar="N", help="Hold so many calls open at once.")


def _add_key(group: argparse._ActionsContainer) -> None:
    group.add_argument("--api-key", help=f"Better in the environment, as {KEY_VARIABLE}.")


def _add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("selection")
    group.add_argument("--level", choices=("core", "extended"), default="extended", help="core: what vendors state.")
    group.add_argument("--only", action="append", default=[], metavar="PREFIX", help="Only ids that begin so.")
    group.add_argument("--step", action="append", default=[], choices=[step.name for step in STEPS])
    group.add_argument("--jobs", type=_amount, default=1, metavar="N", help="Requests at once, where it does no harm.")
    group.add_argument("--seed", type=int, default=1, metavar="N", help="Of the fuzz step.")
    group.add_argument(
        "--examples", type=_amount, default=50, metavar="N", help="Bodies that the fuzz step draws at most."
    )
    group.add_argument("--strict", action="store_true", help="Exit 1 for what is unsupported or unprovable too.")
    group.add_argument("--dry-run", action="store_true", help="List the checks and ask the server nothing.")


def _run(options: argparse.Namespace) -> int:
    document = isogloss_api.document(options.dialect)
    client = _client(options, options.base_url)
    chosen = _options(options)
    planned = Runner(Session(document, client, Facts(options.model or "model"), chosen))
    _check_selection(planned, chosen)
    if options.dry_run:
        Screen().plan(planned.wanted)
        return 0
    if options.report_dir is not None:
        _make(options.report_dir)
    session = Session(document, client, _discovered(options, document, client), chosen)
    made = _made(session, {name: value for name, value in vars(options).items() if name not in UNSAID})
    Screen().summary(made)
    if options.report_dir is not None:
        _write(made.stable() if options.stable else made, options.report_dir)
    return _exit_code(made, strict=options.strict)


def _replay(options: argparse.Namespace) -> int:
    old = read(options.report)
    if not old.of_status(Status.FAIL, Status.ERROR):
        Screen().say("The report names nothing that does not hold.")
        return 0
    check_dialect(old)
    document = isogloss_api.document(old.header.dialect)
    client = _client(options, options.base_url or old.header.base_url)
    options.model = options.model or old.header.model
    for name, value in conditions(old).items():
        setattr(options, name, getattr(options, name, None) or value)
    if options.server is None and options.base_url is None:
        options.server, options.server_version = deviations.split(old.header.software)
    planned = Runner(Session(document, client, Facts(options.model)))
    chosen = replace(_conditions(options), exactly=failures(old, planned.checks))
    session = Session(document, client, _discovered(options, document, client), chosen)
    made = _made(session, {})
    Screen().summary(made)
    return _exit_code(made, strict=False)


def _compare(options: argparse.Namespace) -> int:
    left, right = read(options.left), read(options.right)
    found = compare.comparison(left, right)
    if not found.compared:
        raise UsageError(" ".join(("there is nothing to compare.", *found.notes)))
    screen = Screen()
    for note in found.notes:
        screen.say(note)
    screen.differences(found.differences)
    screen.say(f"{len(found.differences)} difference(s) in {found.compared} requirements")
    return 1 if found.differences else 0


def _board(options: argparse.Namespace) -> int:
    found = board.rows(options.reports, options.output)
    if not found:
        raise UsageError(f"there is no report in {options.reports}")
    try:
        options.output.write_text(board.board(found), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the page cannot be written: {error}") from None
    Screen().say(f"{len(found)} reports: {options.output}")
    return 0


def _mutants(options: argparse.Namespace) -> int:
    key = _key(options)
    if key is None:
        raise UsageError("some mutants let callers in without a key: the server must have one, and --api-key names it")
    return 0 if Screen().trials(trials(Upstream(options.base_url.rstrip("/"), key))) else 1


def _key(options: argparse.Namespace) -> str | None:
    key: str | None = options.api_key or os.environ.get(KEY_VARIABLE)
    return key


def _client(options: argparse.Namespace, base_url: str) -> Client:
    try:
        return Client(
            base_url,
            key=_key(options),
            headers=dict(_pair(text, ":") for text in options.header),
            timeout=options.timeout,
            authorities=options.ca,
            certificate=options.cert,
        )
    except AddressError as error:
        raise UsageError(str(error)) from None
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"the certificates cannot be used: {error}") from None


def _options(options: argparse.Namespace) -> Options:
    return replace(
        _conditions(options),
        level=options.level,
        only=tuple(options.only),
        steps=tuple(options.step),
        jobs=options.jobs,
    )


def _conditions(options: argparse.Namespace) -> Options:
    """All checks, under the conditions that the options name."""
    usual = Options()
    return Options(
        seed=usual.seed if options.seed is None else options.seed,
        examples=options.examples or usual.examples,
        patience=options.patience or usual.patience,
        flood=options.flood or usual.flood,
        settings=dict(_setting(text) for text in options.set or ()),
    )


def _setting(text: str) -> tuple[str, int]:
    name, value = _pair(text, "=")
    known = server_limits(0)
    if name not in known:
        raise UsageError(f"--set knows no {name!r}, only {', '.join(sorted(known))}")
    return name, _whole(value)


def _check_selection(planned: Runner, chosen: Options) -> None:
    """Nothing looked at is nothing found wrong: whoever misspells a prefix must not take that for a success."""
    for prefix in chosen.only:
        if not any(check.id.startswith(prefix) for check in planned.checks):
            raise UsageError(f"no check has an id that begins with {prefix!r}: --dry-run lists them")
    if not planned.wanted:
        raise UsageError("the options leave no check to make")


def _positive(text: str) -> float:
    """A time, for argparse."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def _amount(text: str) -> int:
    """A count, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _make(folder: Path) -> None:
    """A folder to write to, before a long run rather than behind it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"reports cannot be written to {folder}: {error.strerror}") from None


def _pair(text: str, separator: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise UsageError(f"{name!r} must be of the form NAME{separator}VALUE")
    return name.strip(), value.strip()


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} must be a whole number") from None


def _discovered(options: argparse.Namespace, document: dict[str, Json], client: Client) -> Facts:
    claimed = None if options.features is None else frozenset(filter(None, options.features.split(",")))
    known = features_of(document)
    if claimed is not None and not claimed <= known:
        raise UsageError(
            f"--features: the dialect has no {', '.join(sorted(claimed - known))}, only {', '.join(sorted(known))}"
        )
    facts = discover(document, client, model=options.model, context_length=options.max_total_tokens, features=claimed)
    other = Obstacles(document, client).other_dialect()
    if other is not None:
        Screen().warn(f"the errors of this server look like those of {other}: is --dialect right?")
    return replace(facts, software=_software(options, facts.software))


def _software(options: argparse.Namespace, header: str) -> str:
    """Name and version as given; what was not given from the Server header."""
    if options.server is None and options.server_version is None:
        return header
    name, version_found = deviations.split(header)
    version_given = options.server_version or (version_found if options.server is None else "")
    return "/".join(filter(None, (options.server or name, version_given)))


def _made(session: Session, given: dict[str, Json]) -> Report:
    """Run all checks, behind a progress bar."""
    shown = {name: "…" if name in SECRET else value for name, value in given.items() if value not in (None, [], False)}
    begun = report.header(session, shown)
    started = time.perf_counter()
    known = deviations.known(deviations.listed(), session.facts.software)
    runner = Runner(session, known=known)
    results = Screen().follow(runner)
    left = runner.left(results)
    if left:
        Screen().warn(f"interrupted: {len(left)} of {len(runner.checks)} checks were not made")
    results += left
    seconds = round(time.perf_counter() - started, 3)
    return Report(begun, tuple(results), completeness(session.entries, results), seconds, interrupted=bool(left))


def _write(made: Report, folder: Path) -> None:
    """The report in all its forms."""
    stem = folder / made.header.dialect
    badge_text = json.dumps(badge.badge(made), indent=2) + "\n"
    try:
        report.write(made, stem.with_suffix(".jsonl"))
        stem.with_suffix(".xml").write_text(junit.junit(made), encoding="utf-8")
        stem.with_suffix(".html").write_text(page.page(made), encoding="utf-8")
        stem.with_suffix(".badge.json").write_text(badge_text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"reports cannot be written to {folder}: {error.strerror}") from None
    Screen().say(f"reports: {stem.with_suffix('.html')} and .jsonl, .xml, .badge.json beside it")


def _exit_code(made: Report, *, strict: bool) -> int:
    counts = made.counts
    if made.interrupted:
        return INTERRUPTED
    if counts[Status.FAIL] > (0 if strict else len(made.known)):
        return 1
    if counts[Status.ERROR] or made.ledger.missing:
        return 2
    return 1 if strict and counts[Status.UNSUPPORTED] + counts[Status.SKIP] else 0
