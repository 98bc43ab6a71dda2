"""Patches onto the minimal body that go beyond what a server can take, made from its context length.

They serve rules for which the document gives no refused body, since none breaks them on every server. Which patch
breaks which rule is not said here: whoever uses them asks the forecast.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from isogloss_spec.ledger import Entry

from isogloss_conformance.forecast import LONGEST_TOKEN, Forecaster
from isogloss_conformance.session import Session

Json = Any
MESSAGES_CHARS = 4 * 2**20
STOP_CHARS = 1024
DEPTH = 12
ADDRESS_CHARS = 4096


def bodies_beyond(session: Session, forecaster: Forecaster, entry: Entry) -> Iterator[Json]:
    """At most one body that breaks a rule on this server, and no other."""
    if entry.kind == "rule":
        known = session.request_schema["properties"].keys()
        patches = (patch for patch in _patches(session.facts.context_length) if patch.keys() <= known)
        bodies = ({**session.minimal, **patch} for patch in patches)
        yield from islice((body for body in bodies if forecaster.breaks_alone(entry.id, body)), 1)


def _patches(context_length: int | None) -> Iterator[dict[str, Json]]:
    """The cheapest first."""
    yield {"stop": ["a" * STOP_CHARS] * 33}
    yield {"tools": [{"type": "function", "function": {"name": "f", "parameters": _nested(DEPTH)}}]}
    yield {"messages": [{"role": "user", "content": [{"image_url": "a" * (ADDRESS_CHARS + 1)}]}]}
    yield {"prompt": [1] * 1025, "prompt_logprobs": -1, "max_tokens": 1}
    yield {"prompt": [[1] * 64] * 64, "n": 16, "prompt_logprobs": 20, "max_tokens": 1}
    if context_length is not None:
        yield {"max_tokens": context_length}
        yield {"max_tokens": context_length, "stream": True}
        yield {"messages": [{"role": "user", "content": "a" * (context_length * LONGEST_TOKEN)}]}
    yield {"messages": [{"role": "user", "content": "a" * (MESSAGES_CHARS + 1)}]}


def _nested(depth: int) -> dict[str, Json]:
    value: dict[str, Json] = {"type": "object"}
    for _ in range(depth):
        value = {"type": "object", "properties": {"a": value}}
    return value
