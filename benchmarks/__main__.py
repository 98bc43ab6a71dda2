"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks.engine import EngineSettings, measure_engine
from benchmarks.http import HttpSettings, measure_http
from benchmarks.processes import serve_command
from benchmarks.report import Report
from benchmarks.startup import StartupSettings, measure_startup
from benchmarks.workload import Work

EVERYTHING = (["http"], ["startup"], ["engine", "--peer", "transformers"])
"""What a call without arguments measures."""


def _http(options: argparse.Namespace) -> Report:
    return measure_http(
        HttpSettings(
            requests=options.requests,
            streams=options.streams,
            warmup=options.warmup,
            rounds=options.rounds,
            connections=options.connections,
            server=shlex.split(options.server),
        )
    )


def _startup(options: argparse.Namespace) -> Report:
    return measure_startup(StartupSettings(options.engines, options.rounds))


def _engine(options: argparse.Namespace) -> Report:
    return measure_engine(
        EngineSettings(
            concurrency=options.concurrency,
            rounds=options.rounds,
            model=options.model,
            dtype=options.dtype,
            peer=options.peer,
            work=Work(options.prompt_tokens, options.new_tokens),
        )
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", metavar="http|startup|engine")
    _add_http(_kind(kinds.add_parser("http", help="server CPU per request and per event"), _http, rounds=5))
    _add_startup(_kind(kinds.add_parser("startup", help="seconds from start to ready"), _startup, rounds=5))
    _add_engine(_kind(kinds.add_parser("engine", help="tokens per second"), _engine, rounds=3))
    return parser


def _kind(
    parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace], Report], rounds: int
) -> argparse.ArgumentParser:
    parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    parser.set_defaults(measure=measure)
    parser.add_argument("--rounds", type=int, default=rounds, help="what takes turns is measured this often")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser


def _add_http(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=4000, help="per server and round")
    parser.add_argument("--streams", type=int, default=200, help="per server and round")
    parser.add_argument("--warmup", type=int, default=500, help="requests per server before the first round")
    parser.add_argument("--connections", type=int, default=16, help="that are busy at once")
    parser.add_argument("--server", default=shlex.join(serve_command("scripted")), help="how to start our server")


def _add_startup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engines", nargs="+", default=["scripted", "torch"], help="what to start")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32], help="requests at once")
    parser.add_argument("--model", default="smollm2", help="as `isogloss serve` takes it")
    parser.add_argument("--dtype", default="auto", help="as `isogloss serve` takes it")
    parser.add_argument("--prompt-tokens", type=int, default=64, help="per request")
    parser.add_argument("--new-tokens", type=int, default=128, help="per request")
    parser.add_argument("--peer", choices=["transformers"], help="measure this in process, too")


def main() -> None:
    """Measure, print, and write what was asked for; without a kind, all of them."""
    parser = _parser()
    options = parser.parse_args()
    chosen = [options] if options.kind else [parser.parse_args(words) for words in EVERYTHING]
    for one in chosen:
        report: Report = one.measure(one)
        report.show(Console(width=None if sys.stdout.isatty() else 110))
        if one.json is not None:
            report.write(one.json)


if __name__ == "__main__":
    main()
