"""The bodies that the suite sends for one entry: as small as its subject allows, alone and beside another field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isogloss_spec.faults import Fault
from isogloss_spec.judge import Judge
from isogloss_spec.ledger import Entry

Json = Any
BYSTANDERS: tuple[tuple[str, Json], ...] = (("presence_penalty", 0.5), ("seed", 7), ("frequency_penalty", 0.5))
"""Fields that every dialect knows and few rules speak of, with valid values."""
MADE_UP = frozenset({"type", "required", "additionalProperties"})
"""Keywords whose accepted bodies may be made up in whole."""
WORK = "max_tokens"


class Bodies:
    """Varies the bodies of pairs, and asks the judge whether a variant still says the same."""

    def __init__(self, judge: Judge, properties: Mapping[str, Json], model: str) -> None:
        self._judge = judge
        self._properties = properties
        self._served = {name: model for name, node in properties.items() if node.get("x-served") == "model"}

    def small(self, entry: Entry, body: Json) -> Json:
        """An accepted body for the served model with one token to generate, unless the entry is about that."""
        body = self._for_model(entry, body)
        if WORK not in self._properties or _is_about(entry, WORK):
            return body
        smaller = {**body, WORK: 1}
        return smaller if self._fault(smaller) == self._fault(body) else body

    def _for_model(self, entry: Entry, body: Json) -> Json:
        """A made-up name of the model says nothing about an entry that asks for any name."""
        if entry.keyword not in MADE_UP:
            return body
        served = {name: model for name, model in self._served.items() if body.get(name) is not None}
        return {**body, **served}

    def alone_and_beside(self, entry: Entry, body: Json) -> Iterator[Json]:
        """A refused body, and again with an unrelated valid field: the error must not move."""
        yield body
        beside = self._beside(entry, body) if isinstance(body, dict) else None
        if beside is not None:
            yield beside

    def _beside(self, entry: Entry, body: dict[str, Json]) -> Json:
        for name, value in BYSTANDERS:
            if name in body or name not in self._properties or _is_about(entry, name):
                continue
            variant = {**body, name: value}
            if self._fault(variant) == self._fault(body):
                return variant
        return None

    def _fault(self, body: Json) -> tuple[str, str | None, str | None] | None:
        try:
            self._judge.check_body(body)
        except Fault as fault:
            return fault.name, fault.param, fault.entry
        return None


def _is_about(entry: Entry, name: str) -> bool:
    if entry.rule is not None:
        return name in entry.rule["rule"]
    return any(step.name == name for step in entry.steps)
