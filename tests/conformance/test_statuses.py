"""Our server gives every status that its documents declare, and no other."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import isogloss_api
import pytest
from isogloss.web.app import build_app
from isogloss.web.routing import Api, mounts
from isogloss_conformance.client import Answer, Client, Request
from isogloss_conformance.discover import discover
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.runner import Runner
from isogloss_conformance.session import Facts, Options, Session, main_operation
from isogloss_spec.document import Operation, operations
from isogloss_spec.faults import Fault, FaultTable
from support.server import Server, serving

Seen = set[tuple[str, str]]
TAKE_OPTIONS = ("unauthorized", "quota_exceeded", "overloaded", "timeout", "engine_failure", "engine_refused")
"""Faults that a plain run cannot provoke."""
DIALECTS = [name for name in isogloss_api.DOCUMENTS if name != "service"]


@pytest.fixture(scope="module")
def stopping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has been told to stop and waits for a long answer to end."""
    script = base64.b64encode(json.dumps({"prefer_tokens": ["a"], "delay_ms_each": 100}).encode()).decode()
    body = {"model": "scripted", "prompt": "a", "max_tokens": 2000, "stream": True}
    options = "--engine scripted --drain-timeout-s 600".split()
    with (
        serving(tmp_path_factory.mktemp("stopping"), *options) as server,
        server.client() as client,
        client.stream("POST", "/nim/v1/completions", json=body, headers={"X-Isogloss-Script": script}) as answer,
    ):
        lines = answer.iter_lines()  # kept: without it the answer would be closed
        next(lines)
        os.kill(server.pid, signal.SIGTERM)
        yield server


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Operations and statuses of all answers that the suite judges."""
    found: Seen = set()
    judged = Exchange.judged

    def noted(
        self: Exchange, request: Request, answer: Answer, operation: Operation, *rest: Any, **more: Any
    ) -> Outcome:
        if operation.node:
            found.add((operation.id, str(answer.status)))
        return judged(self, request, answer, operation, *rest, **more)

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


def not_ready(server: Server, dialect: str) -> None:
    """Ask for readiness where the dialect has it."""
    document = isogloss_api.document(dialect)
    session = Session(document, Client(f"{server.url}/{dialect}"), Facts("scripted"))
    operation = session.operations.get("health_ready")
    if operation is not None:
        fault = Fault("overloaded", values={"retry_after": 1})
        outcome = Exchange(session).refused(Request("GET", operation.path, headers={}), operation, fault)
        assert outcome.status is Status.PASS, outcome.got
    session.client.close()


def too_large(server: Server, dialect: str, unseen: Seen) -> None:
    """Send a body that is too large to operations without one, which another server may answer before it reads it."""
    document = isogloss_api.document(dialect)
    limit = document["x-limits"]["body"]
    for operation in operations(document):
        if (operation.id, "413") in unseen and "requestBody" not in operation.node:
            with server.client() as client:
                answer = client.request(operation.method, f"/{dialect}{operation.path}", content=b" " * (limit + 1))
            expected = FaultTable(document).render(Fault("body_too_large", values={"limit": limit}))
            assert (answer.status_code, told(answer.json())) == (expected.status, told(expected.body))
            unseen.discard((operation.id, str(answer.status_code)))


def out_of_order(dialect: str, unseen: Seen) -> None:
    """Ask operations of which nothing is left but the status of a fault of our own, with handlers that all have one."""
    document = isogloss_api.document(dialect)
    handlers = importlib.import_module(f"isogloss_api.{dialect}.handlers")
    api = Api(dialect, document, handlers.Routes(OutOfOrder()), handlers.OPERATIONS)
    expected = FaultTable(document).render(Fault("engine_failure"))

    async def ask(operation: Operation) -> httpx.Response:
        transport = httpx.ASGITransport(build_app(mounts([api], api, dialect)))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(operation.method, operation.path)

    for operation in operations(document):
        if (operation.id, str(expected.status)) in unseen:
            answer = asyncio.run(ask(operation))
            assert (answer.status_code, told(answer.json())) == (expected.status, told(expected.body))
            unseen.discard((operation.id, str(answer.status_code)))


class OutOfOrder:
    """Handlers of any dialect, each of which breaks."""

    def __getattr__(self, name: str) -> Any:
        async def broken(*arguments: object) -> None:
            raise RuntimeError

        return broken


def told(body: Any) -> Any:
    """An error body without what differs from call to call."""
    return {name: value for name, value in body.items() if name != "request_id"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_declared_status_and_no_other(narrow: Server, stopping: Server, dialect: str, seen: Seen) -> None:
    document = isogloss_api.document(dialect)
    place = f"{dialect}/{main_operation(document).name}/fault/"
    results = provoke(narrow, dialect, Options(steps=("smoke", "faults"), patience=30, flood=8))
    assert {results[place + fault] for fault in TAKE_OPTIONS} == {Status.PASS}
    not_ready(stopping, dialect)
    declared = {(found.id, status) for found in operations(document) for status in found.node["responses"]}
    assert seen - declared == set()
    unseen = declared - seen
    too_large(narrow, dialect, unseen)
    out_of_order(dialect, unseen)
    assert unseen == set()
