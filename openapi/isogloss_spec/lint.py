"""Checks what a general OpenAPI linter cannot know: our extensions, our writing rules, the rules' own bodies."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files

from jsonschema_rs import Draft202012Validator

from isogloss_spec.context import Context
from isogloss_spec.document import Operation, operations, request_schema_name, resolve
from isogloss_spec.faults import Fault
from isogloss_spec.generate.components import reachable, request_roots, response_roots
from isogloss_spec.json_types import constants, types_of, union
from isogloss_spec.judge import Judge
from isogloss_spec.ledger import ledger
from isogloss_spec.pairs import NoPair, Pairs
from isogloss_spec.rules import RuleError
from isogloss_spec.types import Document, Json, Schema

FORBIDDEN_IN_REQUESTS = (
    "not",
    "if",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "patternProperties",
    "prefixItems",
    "contains",
    "allOf",
    "default",
    "format",
    "multipleOf",
)
"""Valid 2020-12, but models or client generators lose them; x-rules or plain keywords say the same."""
BOUNDS = {
    "minimum": ("minimum", "exclusiveMinimum"),
    "maximum": ("maximum", "exclusiveMaximum"),
}
UINT64 = 2**64 - 1

Check = Callable[[Document], Iterator[str]]


def lint(document: Document) -> list[str]:
    """Findings about one bundled document; empty if all is well."""
    # In this order since each relies on what the ones before have found in order.
    checks: tuple[Check, ...] = (
        extensions,
        faults,
        request_keywords,
        request_places,
        answers,
        media,
        unions,
        rules,
        pairs,
    )
    for check in checks:
        findings = list(check(document))
        if findings:
            return findings
    return []


def extensions(document: Document) -> Iterator[str]:
    """Our members have the shape that extensions.schema.json describes."""
    text = files("isogloss_spec").joinpath("extensions.schema.json").read_text(encoding="utf-8")
    described = json.loads(text)
    yield from _against(described, described, document, "the document")
    definitions = described["$defs"]
    for found in operations(document):
        yield from _against(described, definitions["operation"], found.node, found.id)
    for name, schema in document["components"]["schemas"].items():
        for place, node in _schemas(schema, name):
            yield from _against(described, definitions["schema"], node, place)


def _against(described: Json, definition: Json, node: Json, place: str) -> Iterator[str]:
    schema = {**definition, "$defs": described["$defs"]}
    for error in Draft202012Validator(schema).iter_errors(dict(node)):
        where = "/".join(map(str, error.instance_path))
        yield f"{place}: {where}: {error.kind.name} is broken"


def _schemas(schema: Schema, place: str) -> Iterator[tuple[str, Schema]]:
    """A schema and all that stand inside it, references not followed."""
    yield place, schema
    for name, node in schema.get("properties", {}).items():
        yield from _schemas(node, f"{place}.{name}")
    for branch in union(schema):
        yield from _schemas(branch, place)
    for keyword in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(keyword), Mapping):
            yield from _schemas(schema[keyword], f"{place}.{keyword}")


def faults(document: Document) -> Iterator[str]:
    """Every operation names known faults, and declares exactly the statuses they have."""
    table: Mapping[str, Mapping[str, Json]] = document["x-faults"]
    for name, fault in table.items():
        if fault["body"] not in document["x-error-bodies"]:
            yield f"fault {name}: there is no error body {fault['body']}"
    for found in operations(document):
        named = found.node["x-faults"]
        yield from (f"{found.id}: there is no fault {name}" for name in named if name not in table)
        costs = {str(table[name]["status"]) for name in named if name in table}
        declared = {status for status in found.node["responses"] if not status.startswith("2")}
        for status in sorted(costs ^ declared):
            yield f"{found.id}: {status} is declared by either its faults or its responses, not by both"


def request_keywords(document: Document) -> Iterator[str]:
    """Requests use only keywords that judge, models and client generators all understand."""
    for name, schema in reachable(document, request_roots(document)).items():
        for place, node in _schemas(schema, name):
            yield from (f"{place}: {word} has no place in a request" for word in FORBIDDEN_IN_REQUESTS if word in node)
            yield from _unbounded(place, node)


def _unbounded(place: str, node: Schema) -> Iterator[str]:
    types = node.get("type", [])
    types = types if isinstance(types, list) else [types]
    if not {"integer", "number"} & set(types):
        return
    for side, words in BOUNDS.items():
        limits = [node[word] for word in words if word in node]
        if not limits:
            yield f"{place}: a number without a {side}"
        elif "integer" in types and not -(2**63) <= limits[0] <= UINT64:
            yield f"{place}: its {side} is beyond 64 bits"


def request_places(document: Document) -> Iterator[str]:
    """Every field of a request has a description and a source."""
    for name, schema in reachable(document, request_roots(document)).items():
        if "x-source" not in schema:
            yield f"{name}: no x-source"
        for field, node in schema.get("properties", {}).items():
            inner = resolve(document, node)
            if "description" not in node and "description" not in inner:
                yield f"{name}.{field}: no description"
            if "x-source" not in node and "x-source" not in inner:
                yield f"{name}.{field}: no x-source"


def answers(document: Document) -> Iterator[str]:
    """Every component of an answer says where it comes from."""
    for name, schema in reachable(document, response_roots(document)).items():
        if "x-source" not in schema:
            yield f"{name}: no x-source"


def media(document: Document) -> Iterator[str]:
    """A field of media needs the feature of its kind, and its fault has texts for its reasons."""
    for name, schema in document["components"]["schemas"].items():
        for place, node in _schemas(schema, name):
            if "x-media" in node:
                taken = node["x-media"]
                if node.get("x-feature") != taken["kind"]:
                    yield f"{place}: x-media of a kind needs x-feature of the same name"
                if "reasons" not in document["x-faults"].get(taken["fault"], {}):
                    yield f"{place}: there is no fault {taken['fault']} with reasons"
                if "media" not in document["x-limits"]:
                    yield f"{place}: x-limits says nothing of media"


def unions(document: Document) -> Iterator[str]:
    """Branches of a union are components and can be told apart by type, first item or a constant."""
    for name, schema in reachable(document, request_roots(document)).items():
        for place, node in _schemas(schema, name):
            branches = [branch for branch in union(node) if branch != {"type": "null"}]
            yield from (f"{place}: a branch is not a component" for branch in branches if "$ref" not in branch)
            if all("$ref" in branch for branch in branches):
                marks = Counter(_mark(document, branch) for branch in branches)
                for mark, count in marks.items():
                    if count > 1:
                        yield f"{place}: {count} branches look alike ({mark})"


def _mark(document: Document, branch: Schema) -> str:
    inner = resolve(document, branch)
    types = types_of(document, inner)
    if types == ["array"]:
        return "array of " + _mark(document, inner.get("items", {}))
    if types == ["object"]:
        return f"object with {constants(document, inner)}"
    return str(types)


def rules(document: Document) -> Iterator[str]:
    """Every rule compiles, reads known fields, names a fault of its operation, and does what its bodies say."""
    ids = Counter(entry.id for entry in ledger(document))
    yield from (f"{name}: the id occurs {count} times" for name, count in ids.items() if count > 1)
    for found in operations(document):
        if request_schema_name(document, found) is None:
            continue
        try:
            judge = Judge(document, found.id)
        except RuleError as error:
            yield str(error)
            continue
        findings = list(_rules_of(document, found, judge))
        yield from findings or _bodies(Pairs(document, found.id), document, judge)


def _rules_of(document: Document, found: Operation, judge: Judge) -> Iterator[str]:
    root = document["components"]["schemas"][request_schema_name(document, found)]
    prefix = f"{document.get('x-dialect')}/{found.name}/"
    for rule in judge.rules:
        if not rule.id.startswith(prefix):
            yield f"{rule.id}: the id must begin with {prefix}"
        if rule.fault not in found.node["x-faults"]:
            yield f"{rule.id}: {found.id} does not name the fault {rule.fault}"
        unknown = rule.fields - set(root["properties"])
        unknown |= rule.expression.reads.get("ctx", frozenset()) - set(Context.__annotations__)
        yield from (f"{rule.id}: reads {name}, which there is not" for name in sorted(unknown))
        if rule.stage == "request" and "ctx" in rule.expression.reads:
            yield f"{rule.id}: a rule of stage request knows no ctx"


def _bodies(made: Pairs, document: Document, judge: Judge) -> Iterator[str]:
    yield from _judged(judge, made.minimal, None, "the minimal body")
    for entry in ledger(document):
        if entry.rule is not None:
            pair = made.of(entry)
            for body in pair.accept:
                yield from _judged(judge, body, None, f"{entry.id}: an accept body")
            # What breaks a rule of stage prompt still passes everything that can be known before.
            broken = entry.id if entry.rule["stage"] == "request" else None
            for body in pair.reject:
                yield from _judged(judge, body, broken, f"{entry.id}: a reject body")


def _judged(judge: Judge, body: Json, wanted: str | None, place: str) -> Iterator[str]:
    try:
        judge.check_body(body)
    except Fault as fault:
        if wanted is None or fault.entry != wanted:
            yield f"{place} breaks {fault.entry or fault.keyword or fault.name}"
    else:
        if wanted is not None:
            yield f"{place} breaks nothing"


def pairs(document: Document) -> Iterator[str]:
    """Every schema entry of the ledger has a body it accepts and one that breaks it alone."""
    makers = {
        found.id: Pairs(document, found.id)
        for found in operations(document)
        if request_schema_name(document, found) is not None
    }
    for entry in ledger(document):
        if entry.kind == "schema":
            try:
                makers[entry.operation].of(entry)
            except NoPair as reason:
                yield f"{entry.id}: {reason}"
