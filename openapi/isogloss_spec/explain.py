"""The first violation of a schema, in the project's own order.

A validator library says quickly *whether* a body is valid. What is reported when it is not must not depend on
that library's order, so this walk finds the violations of schema and body side by side. It looks at one item of
an array and one member of a map at most, so that a body of a million bad items costs no more than one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from jsonschema_rs import Draft202012Validator, Registry, ValidationError

from isogloss_spec.document import resolve
from isogloss_spec.faults import Fault, param_of
from isogloss_spec.json_types import Branches, constants, is_of, nouns, plain_nouns, type_of, types_of, union
from isogloss_spec.types import Document, Json, Path, Schema

FAULT_ORDER = ("unknown_field", "missing_field", "wrong_type", "out_of_range")
FAULT_OF_KEYWORD = {
    "additionalProperties": "unknown_field",
    "required": "missing_field",
    "type": "wrong_type",
}
VALUE_KEYWORDS = (
    "const",
    "enum",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "propertyNames",
)
"""Keywords that bound a value of the right type, in the order they are reported."""

BASE = "urn:isogloss:document"


@dataclass(frozen=True, slots=True)
class Violation:
    """One keyword that one place of the body breaks."""

    keyword: str
    path: Path
    values: Mapping[str, Json]

    @property
    def fault(self) -> str:
        """The class of fault that the keyword belongs to."""
        return FAULT_OF_KEYWORD.get(self.keyword, "out_of_range")

    def as_fault(self) -> Fault:
        """The fault to raise."""
        return Fault(
            self.fault,
            param=param_of(self.path),
            path=self.path,
            keyword=self.keyword,
            values=self.values,
        )


class Explainer:
    """Compares bodies with one schema of a document."""

    def __init__(self, document: Document, schema: Schema) -> None:
        self._document = document
        self._schema = schema
        self._registry = Registry([(BASE, dict(document))])
        self._branches = Branches(document)
        self._compiled: dict[tuple[int, str], Draft202012Validator] = {}

    @cached_property
    def _whole(self) -> Draft202012Validator:
        return self._compile(_absolute(self._schema))

    def is_valid(self, body: Json) -> bool:
        """Whether the body satisfies the schema. Fast."""
        return self._whole.is_valid(body)

    def first(self, body: Json) -> Violation | None:
        """The violation to report: by class of fault, then by the order of the schema's properties."""
        found = min(
            self.violations(self._schema, body, ()),
            key=lambda violation: FAULT_ORDER.index(violation.fault),
            default=None,
        )
        if found is None and not self.is_valid(body):
            raise AssertionError("the schema uses a keyword that the walk does not know")
        return found

    def violations(self, schema: Schema, value: Json, path: Path) -> Iterator[Violation]:
        """Violations below one place, at most one for each array and map."""
        schema = resolve(self._document, schema)
        types = types_of(self._document, schema)
        if not is_of(value, types):
            yield _wrong_type(types, path)
        elif any(union(schema)):
            yield from self._in_branch(schema, value, path)
        else:
            yield from self._bounds(schema, value, path)
            if isinstance(value, dict):
                yield from self._members(schema, value, path)
            elif isinstance(value, list):
                yield from self._items(schema, value, path)

    def _in_branch(self, schema: Schema, value: Json, path: Path) -> Iterator[Violation]:
        branch = self._branches.of(schema, value)
        if branch is None:
            return
        items = self._branches.item_types(schema, value)
        if items is not None:
            yield _wrong_type(items, (*path, 0))
            return
        tag = self._wrong_tag(schema, branch, value)
        if tag is None:
            yield from self.violations(branch, value, path)
        else:
            name, allowed = tag
            types = list(dict.fromkeys(type_of(item) for item in allowed))
            if type_of(value[name]) in types:
                yield Violation("enum", (*path, name), {"allowed": allowed})
            else:
                yield _wrong_type(types, (*path, name))

    def _wrong_tag(self, schema: Schema, branch: Schema, value: Json) -> tuple[str, list[Json]] | None:
        """The constant member that belongs to no branch, with the constants of all of them."""
        if not isinstance(value, dict):
            return None
        for name, tag in constants(self._document, branch).items():
            if name in value and value[name] != tag:
                inner = (resolve(self._document, other) for other in union(schema))
                tags = [constants(self._document, other).get(name) for other in inner]
                return name, [item for item in tags if item is not None]
        return None

    def _bounds(self, schema: Schema, value: Json, path: Path) -> Iterator[Violation]:
        for keyword in VALUE_KEYWORDS:
            if keyword in schema and not self._keyword(schema, keyword).is_valid(value):
                yield Violation(keyword, path, self._figures(schema, keyword))
                return

    def _figures(self, schema: Schema, keyword: str) -> dict[str, Json]:
        limit = schema[keyword]
        if keyword == "propertyNames":
            limit = resolve(self._document, limit).get("pattern", "")
        allowed = limit if keyword == "enum" else [limit]
        return {"limit": limit, "allowed": allowed}

    def _members(self, schema: Schema, value: dict[str, Json], path: Path) -> Iterator[Violation]:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        rest = schema.get("additionalProperties", True)
        if rest is False:
            unknown = (name for name in value if name not in properties)
            for name in itertools.islice(unknown, 1):
                yield Violation("additionalProperties", (*path, name), {})
        for name in schema.get("required", ()):
            if name not in value:
                yield Violation("required", (*path, name), {})
        for name, node in properties.items():
            if name in value:
                yield from self.violations(node, value[name], (*path, name))
        if isinstance(rest, Mapping):
            validator = self._keyword(schema, "additionalProperties")
            wrong = (name for name, item in value.items() if not validator.is_valid({name: item}))
            for name in itertools.islice(wrong, 1):
                yield from self.violations(rest, value[name], (*path, name))

    def _items(self, schema: Schema, value: list[Json], path: Path) -> Iterator[Violation]:
        if "items" not in schema:
            return
        try:
            self._keyword(schema, "items").validate(value)
        except ValidationError as error:
            step = int(error.instance_path[0])
            yield from self.violations(schema["items"], value[step], (*path, step))

    def _keyword(self, schema: Schema, keyword: str) -> Draft202012Validator:
        """A validator for one keyword of one schema, compiled at its first use."""
        key = (id(schema), keyword)
        if key not in self._compiled:
            wanted = {keyword: schema[keyword]}
            if keyword == "additionalProperties":  # its meaning depends on its neighbour
                wanted["properties"] = dict.fromkeys(schema.get("properties", {}), True)
            self._compiled[key] = self._compile(_absolute(wanted))
        return self._compiled[key]

    def _compile(self, schema: Json) -> Draft202012Validator:
        return Draft202012Validator(schema, registry=self._registry, mask="<value>")


def _wrong_type(types: list[str], path: Path) -> Violation:
    return Violation("type", path, {"expected": nouns(types), "kind": plain_nouns(types)})


def _absolute(node: Json) -> Json:
    """The same schema with references that hold outside the document."""
    if isinstance(node, list):
        return [_absolute(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    return {
        name: BASE + item if name == "$ref" and isinstance(item, str) else _absolute(item)
        for name, item in node.items()
    }
