"""For every entry of the ledger, bodies that the entry accepts and bodies that break it and nothing else.

Proved with the judge, without a server: this is what keeps a test from passing for the wrong reason.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from isogloss_spec.document import look_up, operation, request_schema_name
from isogloss_spec.explain import Explainer
from isogloss_spec.faults import Fault
from isogloss_spec.judge import Judge
from isogloss_spec.ledger import Entry, Step
from isogloss_spec.media import accepted, refused
from isogloss_spec.rules import RuleError
from isogloss_spec.samples import Sampler
from isogloss_spec.types import Document, Json, Schema

UNKNOWN_MEMBER = "no_such_field"


class NoPair(Exception):
    """No body could be made for an entry; the text says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Whole bodies for one entry."""

    entry: Entry
    accept: tuple[Json, ...]
    reject: tuple[Json, ...]


class Pairs:
    """Makes the pairs of one operation."""

    def __init__(self, document: Document, operation_id: str, *, model: str = "model") -> None:
        self._judge = Judge(document, operation_id)
        name = request_schema_name(document, operation(document, operation_id))
        pointer = f"/components/schemas/{name}"
        self._root: Schema = look_up(document, pointer)
        self._explainer = Explainer(document, {"$ref": "#" + pointer})
        self._sampler = Sampler(document)
        self.minimal: dict[str, Json] = {
            name: model if value == "$MODEL" else value for name, value in self._root["x-minimal"].items()
        }

    def of(self, entry: Entry) -> Pair:
        """The pair of one entry. Raises NoPair for one that has none (faults) or cannot be met."""
        if entry.rule is not None:
            return self._of_rule(entry, entry.rule)
        if entry.kind == "fault":
            raise NoPair("a fault is no rule of the body")
        if entry.kind == "media":
            return self._of_media(entry)
        accept = next((body for body in self._accepted(entry) if self._passes(body)), None)
        if accept is None:
            raise NoPair("no accepted body found")
        reject = tuple(body for body in self._rejected(entry) if self._breaks_only(body, entry))
        if not reject and entry.fault is not None:
            raise NoPair("no body breaks this entry alone")
        return Pair(entry, (accept,), reject)

    def _of_rule(self, entry: Entry, rule: Mapping[str, Json]) -> Pair:
        bodies = [tuple({**self.minimal, **patch} for patch in rule.get(side, ())) for side in ("accept", "reject")]
        return Pair(entry, *bodies)

    def _of_media(self, entry: Entry) -> Pair:
        """Bodies whose files are and are not of a field's formats. The schema takes both."""
        if entry.keyword == "max_bytes":
            raise NoPair("a file that is too large is not sent")
        *above, field = entry.steps
        sides = (accepted(field.schema), refused(field.schema))
        made = [tuple(self._placed(tuple(above), {field.name: value}) for value in values) for values in sides]
        return Pair(entry, *made)

    def _accepted(self, entry: Entry) -> Iterator[Json]:
        if entry.steps and not entry.steps[-1].schema:  # the tag of a union
            yield self._placed(entry.steps[:-1], self._sampler.sample(entry.steps[-2].schema))
            return
        for value in self._sampler.at_edge(self._schema_of(entry), entry.keyword):
            yield self._placed(entry.steps, value)

    def _rejected(self, entry: Entry) -> Iterator[Json]:
        if entry.keyword == "required":
            yield self._without(entry.steps)
        elif entry.keyword == "additionalProperties":
            value = self._sampler.sample(self._schema_of(entry)) if entry.steps else self.minimal
            yield self._placed(entry.steps, {**value, UNKNOWN_MEMBER: 1})
        else:
            for value in self._sampler.broken(self._schema_of(entry), entry.keyword):
                yield self._placed(entry.steps, value)

    def _schema_of(self, entry: Entry) -> Schema:
        if not entry.steps:
            return self._root
        return entry.steps[-1].schema or {"enum": ["a tag"]}

    def _without(self, steps: tuple[Step, ...]) -> Json:
        parent = self._sampler.sample(steps[-2].schema) if len(steps) > 1 else self.minimal
        rest = {name: value for name, value in parent.items() if name != steps[-1].name}
        return self._placed(steps[:-1], rest)

    def _placed(self, steps: tuple[Step, ...], value: Json) -> Json:
        """A whole body with a value at the end of the steps, and as little else as possible."""
        for number in range(len(steps) - 1, -1, -1):
            step = steps[number]
            if step.kind == "items":
                value = self._filled(steps[number - 1].schema, value)
            elif step.kind == "values":
                value = dict.fromkeys(self._sampler.mapping(steps[number - 1].schema, 1), value)
            elif step.kind == "member":
                outer = self._sampler.sample(steps[number - 1].schema) if number else self._company(step.name)
                value = {**copy.deepcopy(outer), step.name: value}
        return value

    def _company(self, name: str) -> dict[str, Json]:
        """The minimal body with the fields that another needs beside it."""
        beside: Mapping[str, Json] = self._root["properties"].get(name, {}).get("x-with", {})
        return {**self.minimal, **beside}

    def _filled(self, schema: Schema, value: Json) -> Json:
        """An array that begins with valid items, so that the first item tells the branch."""
        return [self._sampler.sample(schema["items"]), value]

    def _passes(self, body: Json) -> bool:
        try:
            self._judge.check_body(body)
        except (Fault, RuleError):
            return False
        return True

    def _breaks_only(self, body: Json, entry: Entry) -> bool:
        found = list(self._explainer.violations(self._root, body, ()))
        return [violation.keyword for violation in found] == [entry.keyword]
