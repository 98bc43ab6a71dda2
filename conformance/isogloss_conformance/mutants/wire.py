"""What passes through the proxy, and what a mutant may do to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Json = Any


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way to the right server."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    key: str
    """A key that the right server takes."""
    chunked: bool = False
    """Whether the body came in chunks."""

    @property
    def json(self) -> dict[str, Json]:
        """The body; empty if it is no JSON object."""
        return parsed(self.body)

    def with_key(self) -> Sent:
        """The same request from a caller that may come in."""
        return replace(self, headers={**self.headers, "authorization": f"Bearer {self.key}"})

    def having(self, **members: Json) -> Sent:
        """The same request with members of its body replaced, or removed if they are given as `...`."""
        kept = {name: value for name, value in self.json.items() if members.get(name) is not ...}
        added = {name: value for name, value in members.items() if value is not ...}
        return replace(self, body=json.dumps({**kept, **added}).encode())


@dataclass(frozen=True, slots=True)
class Got:
    """An answer that is not a stream, on its way back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Json]:
        """The body; empty if it is no JSON object."""
        return parsed(self.body)

    def holding(self, body: Json) -> Got:
        """The same answer with another JSON body."""
        return replace(self, body=json.dumps(body).encode())


@dataclass(slots=True)
class Memory:
    """What a mutant remembers of one stream."""

    request: Sent
    events: int = 0


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong server."""

    name: str
    killer: str
    """Begin of the ids of the checks that must notice it."""
    request: Callable[[Sent], Sent | Got] = field(default=lambda sent: sent)
    """What reaches the right server, or an answer that comes from here."""
    answer: Callable[[Sent, Got], Got] = field(default=lambda sent, got: got)
    event: Callable[[Memory, str], list[str]] = field(default=lambda memory, event: [event])
    """The events that leave for one that came, without their blank lines."""
    separator: str = "\n\n"
    """What stands behind each event."""
    buffers: bool = False
    """Whether a stream leaves all at once."""
    holds: bool = False
    """Whether a stream is read to its end though nobody listens any more."""
    stream_type: str = "text/event-stream"

    @property
    def dialect(self) -> str:
        """The dialect whose checks must notice it."""
        return self.killer.partition("/")[0]


def parsed(body: bytes) -> dict[str, Json]:
    """A JSON object; empty if it is none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def refusal(status: int, body: Json) -> Got:
    """An answer of our own."""
    return Got(status, {"content-type": "application/json"}, json.dumps(body).encode())
