"""Server CPU per request of about 1 KB, and per event of a stream, beside starlette routes in the same run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import uvloop

from benchmarks.load import completion_request, drive
from benchmarks.processes import Server, running, serve_command
from benchmarks.report import Report, Row, Section, ratio, spread

OURS = "isogloss"
PEERS = {
    "pydantic": "starlette + pydantic",
    "checks": "starlette, same checks",
    "engine": "starlette, same checks and engine",
}
_SENTENCE = "An isogloss is the line on a map where one dialect ends and the next one begins. "


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How much is measured."""

    requests: int = 4000
    """Whole answers per server and round."""
    streams: int = 200
    """Streams of 64 tokens per server and round."""
    warmup: int = 500
    """Requests before the first round."""
    rounds: int = 5
    connections: int = 16
    server: list[str] = field(default_factory=lambda: serve_command("scripted"))
    """How to start our server; `--port-file PATH` is appended."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of load."""

    title: str
    unit: str
    """What CPU time is counted per."""
    changes: dict[str, Any]
    """To the body of 1 KB."""
    count: int

    def requests(self) -> Iterator[bytes]:
        """No two alike, so that no server can remember an answer."""
        return (completion_request(request_body(number) | self.changes) for number in range(self.count))


@dataclass(frozen=True, slots=True)
class Sample:
    """One round on one server."""

    cpu_us: float
    """Per unit, in microseconds."""
    per_second: float
    """Units per second."""


def request_body(number: int) -> dict[str, Any]:
    """A body of about 1 KB that every server answers with 200; each number gives another."""
    return {
        "model": "scripted",
        "prompt": f"{number}. {_SENTENCE * 10}",
        "max_tokens": 1,
        "temperature": 0,
        "top_p": 0.95,
        "stop": ["\n\n", "END"],
        "seed": number,
        "stream": False,
        "user": "benchmark",
    }


def measure_http(settings: HttpSettings) -> Report:
    """Start all servers, then load them in turn, round by round."""
    streamed = {"stream": True, "max_tokens": 64, "ignore_eos": True}
    kinds = [
        Kind("Whole answers: about 1 KB in, one token out", "request", {}, settings.requests),
        Kind("Streams: about 1 KB in, 64 tokens out", "event", streamed, settings.streams),
    ]
    with _servers(settings) as servers:
        sections = [_measured(kind, servers, settings) for kind in kinds]
    return Report("http", asdict(settings), sections)


@contextmanager
def _servers(settings: HttpSettings) -> Iterator[dict[str, Server]]:
    peers = {name: [sys.executable, "-m", "benchmarks.peers", name] for name in PEERS}
    with ExitStack() as stack:
        commands = peers | {OURS: settings.server}
        yield {name: stack.enter_context(running(command)) for name, command in commands.items()}


def _measured(kind: Kind, servers: Mapping[str, Server], settings: HttpSettings) -> Section:
    requests = list(kind.requests())
    for server in servers.values():
        uvloop.run(drive(server.port, requests[: settings.warmup], settings.connections))
    samples: dict[str, list[Sample]] = {name: [] for name in servers}
    for _ in range(settings.rounds):
        for name, server in servers.items():
            samples[name].append(_sample(server, requests, settings.connections))
    rows = [_row(name, samples, kind.unit) for name in servers]
    return Section(kind.title, rows)


def _sample(server: Server, requests: Sequence[bytes], connections: int) -> Sample:
    before = server.cpu_s()
    load = uvloop.run(drive(server.port, requests, connections))
    units = load.events or len(load.answers)
    return Sample((server.cpu_s() - before) / units * 1e6, units / load.seconds)


def _row(name: str, samples: Mapping[str, Sequence[Sample]], unit: str) -> Row:
    mine = [sample.cpu_us for sample in samples[name]]
    ours = [sample.cpu_us for sample in samples[OURS]]
    figures = {
        f"CPU µs/{unit}": spread(mine),
        f"{unit}s/s": spread(sample.per_second for sample in samples[name]),
        "isogloss/this": ratio(ours, mine),
    }
    return Row(PEERS.get(name, name), figures)
