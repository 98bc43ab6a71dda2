"""What all streams of a server lack is said once, and what it does not repeat anyway is no fault of its streams."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from isogloss_conformance.client import Client
from isogloss_conformance.mutants.proxy import proxied
from isogloss_conformance.mutants.stream_pairs import Chunk, each
from isogloss_conformance.mutants.wire import Memory, Mutant, Sent
from isogloss_conformance.results import Result, Status
from isogloss_conformance.runner import Runner
from isogloss_conformance.session import Options, Session
from isogloss_conformance.streams.step import StreamsStep
from support.server import Server


def looked(session: Session, server: Server, mutant: Mutant, *only: str) -> list[Result]:
    """What the streams step says of the server behind a mutant."""
    with proxied(mutant, server.url, "") as url:
        client = Client(f"{url}/{session.dialect}")
        spoiled = Session(session.document, client, session.facts, Options(only=only))
        results = list(Runner(spoiled, [StreamsStep]).run())
        client.close()
    return results


def more(memory: Memory, chunk: Chunk) -> Chunk:
    return {**chunk, "extra": 1}


def without_end(memory: Memory, text: str) -> list[str]:
    return [] if text == "data: [DONE]" else [text]


@pytest.mark.parametrize("dialect", ["nim", "mindie"])
@pytest.mark.parametrize(
    ("mutant", "name"),
    [(each("m", "x", more), "chunks"), (Mutant("m", "x", event=without_end), "terminator")],
)
def test_a_common_flaw_is_said_once(
    scripted: Server, session: Callable[..., Session], dialect: str, mutant: Mutant, name: str
) -> None:
    failed = [result.id for result in looked(session(dialect), scripted, mutant) if result.status is Status.FAIL]
    assert failed == [f"{dialect}/streams/{name}"]


def test_a_server_that_repeats_nothing_proves_nothing(scripted: Server, session: Callable[..., Session]) -> None:
    def request(sent: Sent) -> Sent:
        return sent.having(seed=...) if "seed" in sent.json else sent

    only = ("nim/streams/same/seed", "nim/streams/same/choices")
    results = looked(session("nim"), scripted, Mutant("m", "x", request), *only)
    assert [result.status for result in results if result.status is not Status.DISABLED] == [Status.SKIP] * 2
