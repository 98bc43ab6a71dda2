"""Our server gives every status that its documents declare, and no other."""

from __future__ import annotations

from collections.abc import Iterator

import isogloss_api
import pytest
from isogloss_conformance.client import Answer, Client, Request
from isogloss_conformance.discover import discover
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecast
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.runner import Runner
from isogloss_conformance.session import Options, Session, main_operation
from isogloss_spec.document import Operation, operations
from support.server import Server, serving

Seen = set[tuple[str, str]]
TAKE_OPTIONS = ("unauthorized", "quota_exceeded", "timeout", "engine_failure", "engine_refused")
"""Faults that a plain run cannot provoke."""
DIALECTS = [name for name in isogloss_api.DOCUMENTS if name != "service"]
UNREACHED = {
    ("list_models", "500"): "only a fault of our own makes the list fail",
    ("list_models", "502"): "only a fault of our own makes the list fail",
    ("health_live", "500"): "only a fault of our own makes it fail",
    ("health_ready", "500"): "only a fault of our own makes it fail",
    ("health_ready", "503"): "only while the model loads or the server stops",
}
"""What no request provokes: operations, statuses and the reason."""
UNREACHED_IN = {
    "acs": {
        ("create_chat_completion", "413"): "the operation is refused before a body is read",
        ("create_chat_completion", "502"): "the operation is refused before an engine is asked",
    }
}
"""The same for one dialect."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with room for few calls, whoever makes them."""
    with serving(tmp_path_factory.mktemp("crowded"), "--engine", "scripted", "--max-open-requests", "3") as server:
        yield server


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Operations and statuses of all answers that the suite judges."""
    found: Seen = set()
    judged = Exchange.judged

    def noted(self: Exchange, request: Request, answer: Answer, operation: Operation, forecast: Forecast) -> Outcome:
        if operation.node:
            found.add((operation.id, str(answer.status)))
        return judged(self, request, answer, operation, forecast)

    monkeypatch.setattr(Exchange, "judged", noted)
    return found


def provoke(server: Server, dialect: str, options: Options) -> dict[str, Status]:
    """Run a part of the suite, of which nothing may fail; statuses of its results by id."""
    document = isogloss_api.document(dialect)
    client = Client(f"{server.url}/{dialect}", key=server.key)
    session = Session(document, client, discover(document, client), options)
    results = list(Runner(session).run())
    client.close()
    assert [(result.id, result.got) for result in results if result.status in (Status.FAIL, Status.ERROR)] == []
    return {result.id: result.status for result in results}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_declared_status_and_no_other(narrow: Server, crowded: Server, dialect: str, seen: Seen) -> None:
    document = isogloss_api.document(dialect)
    place = f"{dialect}/{main_operation(document).name}/fault/"
    results = provoke(narrow, dialect, Options(steps=("smoke", "faults"), patience=5, flood=8))
    assert {results[place + fault] for fault in TAKE_OPTIONS} == {Status.PASS}
    overloaded = place + "overloaded"
    results = provoke(crowded, dialect, Options(exactly=frozenset({overloaded}), flood=8))
    assert results[overloaded] is Status.PASS
    declared = {(found.id, status) for found in operations(document) for status in found.node["responses"]}
    unreached = {**UNREACHED, **UNREACHED_IN.get(dialect, {})}
    assert seen - declared == set()
    assert declared - seen == unreached.keys() & declared
