"""A sentence for each entry of the ledger, as a person would say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isogloss_spec.explain import Violation
from isogloss_spec.faults import FaultTable
from isogloss_spec.json_types import nouns, plain_nouns
from isogloss_spec.ledger import Entry

Json = Any


def requirement(entry: Entry, faults: FaultTable, types: list[str]) -> str:
    """The sentence; `types` are the JSON types of the entry's place."""
    if entry.rule is not None:
        return _rule(entry.rule)
    if entry.kind == "fault":
        return f"The fault {entry.keyword} is answered with {entry.status}."
    place = tuple(step.name for step in entry.steps if step.kind in ("member", "items", "values"))
    if entry.keyword == "nullable":
        return f"'{'.'.join(place)}' may be null."
    if entry.kind == "media":
        return _file(entry, ".".join(place))
    fault = Violation(entry.keyword, place, _figures(entry, types)).as_fault()
    message = faults.render(fault, request_hex="0" * 32)
    return _first_text(message.body) or entry.id


def _rule(rule: Mapping[str, Json]) -> str:
    text: str = rule["message"]
    return f"{text} ({rule['rule']})"


def _file(entry: Entry, place: str) -> str:
    limit = entry.steps[-1].schema["x-media"][entry.keyword]
    allowed = f"has at most {limit} bytes" if entry.keyword == "max_bytes" else f"is one of: {', '.join(limit)}"
    return f"A file in '{place}' {allowed}."


def _figures(entry: Entry, types: list[str]) -> dict[str, Json]:
    schema = entry.steps[-1].schema if entry.steps else {}
    limit = schema.get(entry.keyword, "")
    if isinstance(limit, Mapping):
        limit = limit.get("pattern", "")
    allowed = limit if isinstance(limit, list) else [limit]
    return {"limit": limit, "allowed": allowed, "expected": nouns(types), "kind": plain_nouns(types)}


def _first_text(body: Json) -> str | None:
    """The message of an error body, wherever the dialect puts it."""
    if isinstance(body, Mapping):
        for name in ("message", "error"):
            if name in body:
                found = _first_text(body[name])
                if found:
                    return found
        return None
    return body if isinstance(body, str) else None
