"""Small valid values of a schema, values at an edge of a keyword, and values that break it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping

from isogloss_spec.document import resolve
from isogloss_spec.json_types import is_of, types_of, union
from isogloss_spec.types import Document, Json, Schema

OF_TYPE: Mapping[str, Json] = {
    "string": "a",
    "boolean": True,
    "number": 1.5,
    "integer": 1,
    "array": [],
    "object": {},
    "null": None,
}


class Sampler:
    """Makes values for the schemas of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def sample(self, node: Schema) -> Json:
        """A small valid value; the schema's own example if it has one."""
        schema = resolve(self._document, node)
        for candidate in (node, schema):
            if "examples" in candidate:
                return candidate["examples"][0]
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        branches = [branch for branch in union(schema) if branch != {"type": "null"}]
        if branches:
            return self.sample(branches[0])
        kind = next(kind for kind in types_of(self._document, schema) if kind != "null")
        return self._of_kind(kind, schema)

    def _of_kind(self, kind: str, schema: Schema) -> Json:
        if kind in ("integer", "number"):
            return _number(schema)
        if kind == "string":
            return "a" * max(1, schema.get("minLength", 0))
        if kind == "array":
            return [self.sample(schema["items"]) for _ in range(max(1, schema.get("minItems", 0)))]
        if kind == "object":
            properties = schema.get("properties", {})
            return {name: self.sample(properties[name]) for name in schema.get("required", ())}
        return OF_TYPE[kind]

    def at_edge(self, schema: Schema, keyword: str) -> Iterator[Json]:
        """Values that just satisfy a keyword, the nearest to the edge first."""
        if keyword in ("type", "required", "additionalProperties"):
            yield self.sample(schema)
        elif keyword == "nullable":
            yield None
        elif keyword in ("const", "enum"):
            yield from schema.get("enum", [schema.get("const")])
        elif keyword in _EDGES:
            yield _EDGES[keyword][0](self, schema)
        yield self.sample(schema)

    def broken(self, schema: Schema, keyword: str) -> Iterator[Json]:
        """Values that break a keyword and nothing else."""
        if keyword == "type":
            types = types_of(self._document, schema)
            yield from (value for value in OF_TYPE.values() if not is_of(value, types))
            if "integer" in types or "number" in types:
                yield "1"
        elif keyword in ("const", "enum"):
            yield "none of these"
        elif keyword in _EDGES:
            yield _EDGES[keyword][1](self, schema)

    def array(self, schema: Schema, length: int) -> Json:
        """An array of that many items, all different if they must be."""
        item = self.sample(schema["items"])
        return [item] * length

    def mapping(self, schema: Schema, size: int) -> Json:
        """An object with that many members."""
        value = self.sample(schema.get("additionalProperties", {"type": "string"}))
        pattern = schema.get("propertyNames", {}).get("pattern", "")
        name = "{}" if re.search(pattern, "1") else "k{}"
        return {name.format(number): value for number in range(size)}


def _number(schema: Schema) -> Json:
    """1 if the bounds allow it, else the value nearest to it."""
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return min(max(1, low), high)


def _beyond(limit: Json, direction: int, schema: Schema) -> Json:
    """The nearest value on the other side of a bound."""
    if "integer" in (schema["type"] if isinstance(schema["type"], list) else [schema["type"]]):
        return int(limit) + direction
    return near(limit, direction)


NEARNESS = 1e-6
"""Relative distance to the bound of a real number, absolute at 0: single precision tells them apart, too."""
_DIGITS = 7


def near(limit: float, direction: int) -> float:
    """A number beside a bound, in few digits."""
    return float(f"{limit + direction * NEARNESS * (abs(limit) or 1.0):.{_DIGITS}g}")


Maker = Callable[[Sampler, Schema], Json]
_EDGES: Mapping[str, tuple[Maker, Maker]] = {
    "minimum": (lambda _, s: s["minimum"], lambda _, s: _beyond(s["minimum"], -1, s)),
    "maximum": (lambda _, s: s["maximum"], lambda _, s: _beyond(s["maximum"], 1, s)),
    "exclusiveMinimum": (
        lambda _, s: _beyond(s["exclusiveMinimum"], 1, s),
        lambda _, s: s["exclusiveMinimum"],
    ),
    "exclusiveMaximum": (
        lambda _, s: _beyond(s["exclusiveMaximum"], -1, s),
        lambda _, s: s["exclusiveMaximum"],
    ),
    "minLength": (lambda _, s: "a" * s["minLength"], lambda _, s: "a" * (s["minLength"] - 1)),
    "maxLength": (lambda _, s: "a" * s["maxLength"], lambda _, s: "a" * (s["maxLength"] + 1)),
    "minItems": (lambda m, s: m.array(s, s["minItems"]), lambda m, s: m.array(s, s["minItems"] - 1)),
    "maxItems": (lambda m, s: m.array(s, s["maxItems"]), lambda m, s: m.array(s, s["maxItems"] + 1)),
    "minProperties": (
        lambda m, s: m.mapping(s, s["minProperties"]),
        lambda m, s: m.mapping(s, s["minProperties"] - 1),
    ),
    "maxProperties": (
        lambda m, s: m.mapping(s, s["maxProperties"]),
        lambda m, s: m.mapping(s, s["maxProperties"] + 1),
    ),
    "pattern": (lambda m, s: m.sample(s), lambda _, s: "\u0000 no match"),
    "propertyNames": (
        lambda m, s: m.mapping(s, 1),
        lambda m, s: {"no match": m.sample(s.get("additionalProperties", {"type": "string"}))},
    ),
}
"""Keyword to (value at the edge, value just beyond it)."""
