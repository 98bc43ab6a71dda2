"""The documents that this server can speak: a new dialect is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isogloss_api.nim import handlers as nim
from isogloss_api.runtime import Operation
from isogloss_api.service import handlers as service

from isogloss.dialects.nim import NimHandlers
from isogloss.dialects.service import ServiceHandlers
from isogloss.engine.api import Engine


@dataclass(frozen=True, slots=True)
class Dialect:
    """One document's routes, with handlers behind them."""

    document: str
    """Its name, as `isogloss_api.document` takes it."""
    routes: object
    """One async method per operationId."""
    operations: tuple[Operation, ...]


_BUILDERS: dict[str, Callable[[Engine], Dialect]] = {
    "nim": lambda engine: Dialect("nim", nim.Routes(NimHandlers(engine)), nim.OPERATIONS),
    "service": lambda engine: Dialect("service", service.Routes(ServiceHandlers(engine)), service.OPERATIONS),
}

DIALECTS = tuple(_BUILDERS)
"""Every name that `build` takes."""


def build(name: str, engine: Engine) -> Dialect:
    """A dialect on an engine. Raises KeyError for a name that is not in DIALECTS."""
    return _BUILDERS[name](engine)
