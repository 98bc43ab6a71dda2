"""The bodies that the suite sends for one entry: as small as its subject allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isogloss_spec.faults import Fault
from isogloss_spec.judge import Judge
from isogloss_spec.ledger import Entry

Json = Any
MADE_UP = frozenset({"type", "required", "additionalProperties"})
"""Keywords whose accepted bodies may be made up in whole."""
WORK = "max_tokens"
STOP = "stop"
SOON = [" ", "e", "a", "\n"]
"""Texts of which one comes soon, whatever a model says."""


class Bodies:
    """Varies the bodies of pairs, and asks the judge whether a variant still says the same."""

    def __init__(self, judge: Judge, properties: Mapping[str, Json], model: str) -> None:
        self._judge = judge
        self._properties = properties
        self._served = {name: model for name, node in properties.items() if node.get("x-served") == "model"}

    def small(self, entry: Entry, body: Json) -> Json:
        """An accepted body for the served model with little to generate: one token, or up to a text that comes soon."""
        return self.short(entry, self._for_model(entry, body))

    def short(self, entry: Entry, body: Json) -> Json:
        """A body that is not for long: a server that takes what it should refuse is not kept busy, either."""
        if not isinstance(body, dict):
            return body
        return self._with(entry, body, WORK, 1) or self._with(entry, body, STOP, SOON) or body

    def _with(self, entry: Entry, body: Json, name: str, value: Json) -> Json:
        """The body with a field more, if the entry is not about that field and the verdict stays."""
        if name not in self._properties or _is_about(entry, name):
            return None
        variant = {**body, name: value}
        return variant if self._fault(variant) == self._fault(body) else None

    def _for_model(self, entry: Entry, body: Json) -> Json:
        """A made-up name of the model says nothing about an entry that asks for any name."""
        if entry.keyword not in MADE_UP:
            return body
        served = {name: model for name, model in self._served.items() if body.get(name) is not None}
        return {**body, **served}

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
