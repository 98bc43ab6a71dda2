"""The ledger: every rule of a document, each with its id, where it comes from and what breaking it costs.

Computed from the document alone. The suite proves it, the docs list it, coverage is measured against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from isogloss_spec.document import Operation, component_name, operations, request_schema_name, resolve
from isogloss_spec.explain import FAULT_OF_KEYWORD, VALUE_KEYWORDS
from isogloss_spec.faults import FaultTable
from isogloss_spec.json_types import constants, types_of, union
from isogloss_spec.types import Document, Json, Schema

Kind = Literal["schema", "rule", "media", "fault"]
Level = Literal["core", "extended"]
_OF_FILES = ("formats", "max_bytes")
"""Members of `x-media` that a file may break."""
Source = Mapping[str, str]
"""Keyword to where it comes from; `default` speaks for those not named."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step from a schema to one below it."""

    kind: Literal["member", "items", "values", "branch"]
    name: str
    """Of the member or branch."""
    schema: Schema
    """The resolved schema at the end of the step."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule."""

    id: str
    kind: Kind
    operation: str
    keyword: str
    """The schema keyword, the rule's name or the fault's name."""
    fault: str | None
    """What breaking it raises; None for a rule that only says what is accepted."""
    status: int | None
    source: str
    features: tuple[str, ...] = ()
    """Features that the place needs."""
    steps: tuple[Step, ...] = field(default=(), repr=False)
    """The way from the body's schema to the place."""
    rule: Mapping[str, Json] | None = field(default=None, repr=False)

    @property
    def level(self) -> Level:
        """`core` for what a seed states, `extended` for what was inferred."""
        return "core" if self.source.startswith("seed") else "extended"


def ledger(document: Document) -> list[Entry]:
    """All entries of a document, in its own order."""
    return [entry for found in operations(document) for entry in _Walk(document, found).entries()]


class _Walk:
    """Visits everything that one operation says about its body."""

    def __init__(self, document: Document, found: Operation) -> None:
        self._document = document
        self._operation = found
        self._faults = FaultTable(document)
        dialect = document.get("x-dialect", "service")
        self._prefix = f"{dialect}/{found.name}"

    def entries(self) -> Iterator[Entry]:
        name = request_schema_name(self._document, self._operation)
        if name is not None:
            schema = self._document["components"]["schemas"][name]
            yield from self._schema(schema, (), {}, ())
            for rule in schema.get("x-rules", ()):
                yield self._rule(rule)
        for fault in self._operation.node["x-faults"]:
            yield self._fault(fault)

    def _schema(
        self, node: Schema, steps: tuple[Step, ...], source: Source, features: tuple[str, ...]
    ) -> Iterator[Entry]:
        schema = resolve(self._document, node)
        source = {**_sources(source), **_sources(schema.get("x-source")), **_sources(node.get("x-source"))}
        named = (node.get("x-feature"), schema.get("x-feature"))
        features = tuple(dict.fromkeys([*features, *(name for name in named if name)]))
        make = _Maker(self, steps, source, features)
        yield from make.media(schema.get("x-media", {}))
        yield from make.types(types_of(self._document, schema))
        if any(union(schema)):
            yield from self._union(schema, make)
        else:
            yield from self._plain(schema, make)

    def _plain(self, schema: Schema, make: _Maker) -> Iterator[Entry]:
        for keyword in VALUE_KEYWORDS:
            if keyword in schema:
                yield make.entry(keyword)
        if schema.get("additionalProperties") is False:
            yield make.entry("additionalProperties")
        properties: Mapping[str, Schema] = schema.get("properties", {})
        for name, node in properties.items():
            step = Step("member", name, resolve(self._document, node))
            if name in schema.get("required", ()):
                yield make.entry("required", step)
            yield from self._schema(node, (*make.steps, step), make.source, make.features)
        for keyword, kind in (("items", "items"), ("additionalProperties", "values")):
            below = schema.get(keyword)
            if isinstance(below, Mapping):
                step = Step("items" if kind == "items" else "values", kind, resolve(self._document, below))
                yield from self._schema(below, (*make.steps, step), make.source, make.features)

    def _union(self, schema: Schema, make: _Maker) -> Iterator[Entry]:
        tagged: dict[str, None] = {}
        for branch in union(schema):
            if branch == {"type": "null"}:
                continue
            inner = resolve(self._document, branch)
            tags = constants(self._document, inner) if inner.get("type") == "object" else {}
            tagged.update(dict.fromkeys(tags))
            step = Step("branch", component_name(branch), inner)
            for entry in self._schema(branch, (*make.steps, step), make.source, make.features):
                if not _decides_branch(entry, len(make.steps) + 1, tags):
                    yield entry
        for name in tagged:
            yield make.entry("required", Step("member", name, {}))
            yield make.entry("enum", Step("member", name, {}))

    def entry(self, keyword: str, steps: tuple[Step, ...], source: Source, features: tuple[str, ...]) -> Entry:
        """An entry for one keyword at one place."""
        fault = None if keyword == "nullable" else FAULT_OF_KEYWORD.get(keyword, "out_of_range")
        place = ".".join(step.name for step in steps) or "body"
        return Entry(
            id=f"{self._prefix}/{place}/{keyword}",
            kind="schema",
            operation=self._operation.id,
            keyword=keyword,
            fault=fault,
            status=self._faults.status(fault) if fault else None,
            source=source.get(keyword, source["default"]),
            features=features,
            steps=steps,
        )

    def media(self, taken: Mapping[str, Json], made: Entry) -> Entry:
        """The same entry, about the files of a field."""
        fault: str = taken["fault"]
        return replace(made, kind="media", fault=fault, status=self._faults.status(fault))

    def _rule(self, rule: Mapping[str, Json]) -> Entry:
        return Entry(
            id=rule["id"],
            kind="rule",
            operation=self._operation.id,
            keyword=rule["id"].rsplit("/", 1)[1],
            fault=rule["fault"],
            status=self._faults.status(rule["fault"]),
            source=rule["source"],
            rule=rule,
        )

    def _fault(self, name: str) -> Entry:
        table: Mapping[str, Mapping[str, Json]] = self._document["x-faults"]
        return Entry(
            id=f"{self._prefix}/fault/{name}",
            kind="fault",
            operation=self._operation.id,
            keyword=name,
            fault=name,
            status=self._faults.status(name),
            source=table[name].get("x-source", "inferred"),
        )


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the entries of one place."""

    walk: _Walk
    steps: tuple[Step, ...]
    source: Source
    features: tuple[str, ...]

    def entry(self, keyword: str, *below: Step) -> Entry:
        return self.walk.entry(keyword, (*self.steps, *below), self.source, self.features)

    def types(self, types: list[str]) -> Iterator[Entry]:
        yield self.entry("type")
        if "null" in types:
            yield self.entry("nullable")

    def media(self, taken: Mapping[str, Json]) -> Iterator[Entry]:
        for keyword in _OF_FILES if taken else ():
            yield self.walk.media(taken, self.entry(keyword))


def _sources(stated: Json) -> Source:
    """`x-source` of one place: one text for all keywords, or a text per keyword."""
    if stated is None:
        return {}
    return {"default": stated} if isinstance(stated, str) else stated


def _decides_branch(entry: Entry, depth: int, tags: Mapping[str, Json]) -> bool:
    """Whether an entry only says which branch of the union is meant; the union's own entries cover it."""
    if len(entry.steps) == depth:
        return entry.keyword == "type"
    last = entry.steps[-1]
    is_tag = len(entry.steps) == depth + 1 and last.kind == "member" and last.name in tags
    return is_tag and entry.keyword in ("const", "type", "required")
