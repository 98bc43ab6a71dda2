"""A real server with the scripted engine, and results made up for the reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import isogloss_api
import pytest
from isogloss_conformance.client import Client
from isogloss_conformance.discover import discover
from isogloss_conformance.session import Options, Session
from support.server import KEY, Server, serving


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = "--engine scripted --reasoning-parser qwen3".split()
    with serving(tmp_path_factory.mktemp("scripted"), *options) as server:
        yield server


@pytest.fixture(scope="session")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server behind a key, with little patience and little room."""
    limits = "--max-open-requests-per-key 6 --max-num-seqs 2 --max-waiting 1 --body-timeout-s 4".split()
    with serving(tmp_path_factory.mktemp("narrow"), "--engine", "scripted", *limits, key=KEY) as server:
        yield server


@pytest.fixture
def session(scripted: Server) -> Iterator[Callable[..., Session]]:
    """Sessions for a dialect: `session("nim", only=("nim/completions/n",))`."""
    clients = []

    def make(dialect: str, **options: object) -> Session:
        document = isogloss_api.document(dialect)
        client = Client(f"{scripted.url}/{dialect}")
        clients.append(client)
        return Session(document, client, discover(document, client), Options(**options))

    yield make
    for client in clients:
        client.close()
