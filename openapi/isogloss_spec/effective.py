"""What a request effectively says: defaults filled in (`x-default`), null resolved."""

from __future__ import annotations

from isogloss_spec.document import resolve
from isogloss_spec.json_types import types_of, union
from isogloss_spec.types import Document, Json, Schema


class Effective:
    """Fills in the defaults of one object schema, nested objects included."""

    def __init__(self, document: Document, schema: Schema) -> None:
        self._defaults: dict[str, Json] = {}
        self._nested: dict[str, Effective] = {}
        self._whole: set[str] = set()
        """Fields whose numbers are integers; JSON may write them as 1.0."""
        for name, node in resolve(document, schema).get("properties", {}).items():
            self._defaults[name] = node.get("x-default")
            if _integers_only(document, node):
                self._whole.add(name)
            inner = _object_of(document, node)
            if inner is not None:
                self._nested[name] = Effective(document, inner)

    def whole(self, body: dict[str, Json]) -> dict[str, Json]:
        """The same body with integers as integers: JSON may write them as 1.0."""
        changed = {name: _as_integers(body[name]) for name in self._whole & body.keys() if _has_floats(body[name])}
        return {**body, **changed} if changed else body

    def of(self, body: dict[str, Json]) -> dict[str, Json]:
        """Every field of the schema; None where neither the request nor the document has a value."""
        values = self._defaults.copy()
        for name, value in body.items():
            if value is not None and name in values:
                nested = self._nested.get(name) if isinstance(value, dict) else None
                values[name] = value if nested is None else nested.of(value)
        return values


def _object_of(document: Document, node: Schema) -> Schema | None:
    """The one object schema with members of its own that a field admits, if it is exactly one."""
    found = []
    for candidate in [node, *union(resolve(document, node))]:
        schema = resolve(document, candidate)
        if schema.get("type") == "object" and schema.get("properties"):
            found.append(schema)
    return found[0] if len(found) == 1 else None


def _integers_only(document: Document, node: Schema) -> bool:
    """Whether the numbers of a field, in lists too, can only be integers."""
    types = types_of(document, node)
    if "number" in types:
        return False
    lists = [resolve(document, branch) for branch in [node, *union(resolve(document, node))]]
    items = [schema["items"] for schema in lists if "items" in schema]
    return "integer" in types or any(_integers_only(document, item) for item in items)


def _has_floats(value: Json) -> bool:
    if not isinstance(value, list):
        return isinstance(value, float)
    types = set(map(type, value))
    return float in types or (list in types and any(map(_has_floats, value)))


def _as_integers(value: Json) -> Json:
    if isinstance(value, list):
        return [_as_integers(item) for item in value]
    return int(value) if isinstance(value, float) else value
