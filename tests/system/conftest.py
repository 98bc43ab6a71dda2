"""Real servers in processes of their own, one of each kind for the whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.server import KEY, Server, serving


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The scripted engine, no key."""
    with serving(tmp_path_factory.mktemp("scripted"), "--engine", "scripted") as server:
        yield server


@pytest.fixture(scope="session")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The scripted engine behind a key."""
    with serving(tmp_path_factory.mktemp("keyed"), "--engine", "scripted", key=KEY) as server:
        yield server


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The torch engine with the embedded model."""
    with serving(tmp_path_factory.mktemp("real"), "--engine", "torch") as server:
        yield server


@pytest.fixture(scope="session")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same told how to call functions, which its template does not know."""
    with serving(tmp_path_factory.mktemp("calling"), "--engine", "torch", "--tool-parser", "hermes") as server:
        yield server


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., object]:
    """Start a server of one's own: `with start("--option", …) as server`."""
    return lambda *arguments, **options: serving(tmp_path_factory.mktemp("own"), *arguments, **options)
