"""Everything a step needs to know about one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from isogloss_spec.document import Operation, look_up, operations, request_schema_name
from isogloss_spec.faults import FaultTable
from isogloss_spec.ledger import Entry, ledger

from isogloss_conformance.client import Client
from isogloss_conformance.results import Level

Json = Any


@dataclass(frozen=True, slots=True)
class Options:
    """What the person who runs the suite wants."""

    level: Level = "extended"
    """`core` for what the vendor states, `extended` for what was inferred too."""
    only: tuple[str, ...] = ()
    """Prefixes of ids; empty for all."""
    exactly: frozenset[str] = frozenset()
    """Whole ids; empty for all."""
    steps: tuple[str, ...] = ()
    """Names of steps; empty for all."""
    jobs: int = 1
    seed: int = 1
    """Of the fuzz step: the same seed sends the same requests."""
    examples: int = 50
    """Of the fuzz step: how many bodies are drawn for each operation and kind, at most."""
    patience: float = 0.0
    """Seconds to wait for a server to give up on a slow request; 0 does not try."""
    flood: int = 0
    """Requests to hold open at once to see a server refuse more; 0 does not try."""
    settings: Mapping[str, int] = field(default_factory=dict)
    """Limits of this server that rules read as `ctx.server.NAME`."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about one server."""

    model: str
    context_length: int | None = None
    features: frozenset[str] = frozenset()
    scripted: bool = False
    """Whether it follows `X-Isogloss-Script`."""
    software: str = ""
    """Name and version as the server gives them."""


@dataclass(frozen=True)
class Session:
    """One document, one server."""

    document: Mapping[str, Json]
    client: Client
    facts: Facts
    options: Options = Options()

    @cached_property
    def dialect(self) -> str:
        """The name that all ids begin with."""
        return str(self.document["x-dialect"])

    @cached_property
    def entries(self) -> list[Entry]:
        """The ledger of the document."""
        return ledger(self.document)

    @cached_property
    def faults(self) -> FaultTable:
        """How the dialect shows faults."""
        return FaultTable(self.document)

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """All operations by id."""
        return {found.id: found for found in operations(self.document)}

    @cached_property
    def main(self) -> Operation:
        """The operation that generates: the first with a JSON body."""
        return main_operation(self.document)

    @cached_property
    def request_schema(self) -> Mapping[str, Json]:
        """The schema of the main operation's body."""
        name = request_schema_name(self.document, self.main)
        schema: Mapping[str, Json] = look_up(self.document, f"/components/schemas/{name}")
        return schema

    @cached_property
    def minimal(self) -> dict[str, Json]:
        """The smallest valid body, for the served model."""
        values: Mapping[str, Json] = self.request_schema["x-minimal"]
        return {name: self.facts.model if value == "$MODEL" else value for name, value in values.items()}

    def wanted(self, check_id: str, level: Level) -> bool:
        """Whether the options of the run select a check."""
        if self.options.level == "core" and level != "core":
            return False
        if self.options.exactly and check_id not in self.options.exactly:
            return False
        only = self.options.only
        return not only or check_id.startswith(only)


def main_operation(document: Mapping[str, Json]) -> Operation:
    """The operation that generates: the first with a JSON body."""
    return next(found for found in operations(document) if request_schema_name(document, found))
