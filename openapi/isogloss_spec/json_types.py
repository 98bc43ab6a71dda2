"""JSON types as JSON Schema counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isogloss_spec.document import resolve
from isogloss_spec.types import Document, Json, Schema

NOUNS = {
    "null": "null",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
}


def nouns(types: list[str]) -> str:
    """Types as an error names them: `an integer or null`."""
    return " or ".join(NOUNS[kind] for kind in types)


def plain_nouns(types: list[str]) -> str:
    """The same for readers who know neither integers nor null: `a number`."""
    kinds = ["number" if kind == "integer" else kind for kind in types if kind != "null"]
    return nouns(list(dict.fromkeys(kinds)))


def type_of(value: Json) -> str:
    """The narrowest JSON type of a value: 1.0 is an integer, true is not."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def is_of(value: Json, types: list[str]) -> bool:
    """Whether a value is of one of these types; an integer is a number too."""
    kind = type_of(value)
    return kind in types or (kind == "integer" and "number" in types)


def types_of(document: Document, schema: Schema) -> list[str]:
    """The JSON types a schema admits; all of them if it does not say."""
    schema = resolve(document, schema)
    if "type" in schema:
        named = schema["type"]
        return list(named) if isinstance(named, list) else [named]
    if "const" in schema:
        return [type_of(schema["const"])]
    if "enum" in schema:
        return sorted({type_of(value) for value in schema["enum"]})
    branches = list(union(schema))
    if branches:
        found = [kind for branch in branches for kind in types_of(document, branch)]
        return list(dict.fromkeys(found))
    return list(NOUNS)


def union(schema: Schema) -> Iterator[Schema]:
    """The branches of `anyOf` or `oneOf`, unresolved."""
    yield from schema.get("anyOf", schema.get("oneOf", ()))


class Branches:
    """Finds the branch of a union that an instance belongs to.

    The branches differ by JSON type, by the type of the first item, or by a constant member.
    """

    def __init__(self, document: Document) -> None:
        self._document = document

    def of(self, schema: Schema, value: Json) -> Schema | None:
        """The resolved branch, or None if none admits the value's type."""
        candidates = [resolve(self._document, branch) for branch in union(schema)]
        fitting = [c for c in candidates if is_of(value, types_of(self._document, c))]
        if len(fitting) > 1:
            narrowed = [branch for branch in fitting if self._belongs(branch, value)]
            fitting = narrowed or fitting
        return fitting[0] if fitting else None

    def item_types(self, schema: Schema, value: Json) -> list[str] | None:
        """What the first item may be, if it decides between several branches and suits none of them."""
        if not isinstance(value, list) or not value:
            return None
        arrays = [resolve(self._document, branch) for branch in union(schema)]
        arrays = [branch for branch in arrays if types_of(self._document, branch) == ["array"]]
        types = [kind for branch in arrays for kind in types_of(self._document, branch.get("items", {}))]
        return None if len(arrays) < 2 or is_of(value[0], types) else list(dict.fromkeys(types))

    def _belongs(self, branch: Schema, value: Json) -> bool:
        if isinstance(value, list):
            return self._first_item_fits(branch, value)
        if isinstance(value, dict):
            tags = constants(self._document, branch)
            return all(value.get(name) == tag for name, tag in tags.items())
        return True

    def _first_item_fits(self, branch: Schema, value: list[Json]) -> bool:
        items = branch.get("items", {})
        if not value or not is_of(value[0], types_of(self._document, items)):
            return False
        inner = resolve(self._document, items)
        return not (isinstance(value[0], list) and value[0]) or self._belongs(inner, value[0])


def constants(document: Document, schema: Schema) -> Mapping[str, Json]:
    """Members of an object schema that have one fixed value."""
    found = {}
    for name, node in schema.get("properties", {}).items():
        inner = resolve(document, node)
        if "const" in inner:
            found[name] = inner["const"]
    return found
