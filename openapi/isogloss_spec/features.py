"""Which features a request asks for (`x-feature`). Only values with an effect count."""

from __future__ import annotations

from collections.abc import Iterator

from isogloss_spec.document import resolve
from isogloss_spec.json_types import Branches, union
from isogloss_spec.types import Document, Json, Path, Schema


class Features:
    """Finds the marks `x-feature` that a body touches."""

    def __init__(self, document: Document, schema: Schema) -> None:
        self._document = document
        self._schema = schema
        self._branches = Branches(document)
        self._marked: dict[int, bool] = {}
        self._members: dict[int, list[tuple[str, Schema]]] = {}

    def wanted(self, body: Json) -> Iterator[tuple[str, Path]]:
        """Feature and place, for every effective use, in the order of the schema."""
        return self._below(self._schema, body, ())

    def _below(self, node: Schema, value: Json, path: Path) -> Iterator[tuple[str, Path]]:
        if value is None or not self._has_marks(node, frozenset()):
            return
        schema = resolve(self._document, node)
        for marked in [node] if node is schema else [node, schema]:
            if "x-feature" in marked and value not in marked.get("x-neutral", ()):
                yield marked["x-feature"], path
        branch = self._branches.of(schema, value) if any(union(schema)) else None
        if branch is not None:
            yield from self._below(branch, value, path)
        else:
            yield from self._inside(schema, value, path)

    def _inside(self, schema: Schema, value: Json, path: Path) -> Iterator[tuple[str, Path]]:
        if isinstance(value, dict):
            for name, inner in self._marked_members(schema):
                if name in value:
                    yield from self._below(inner, value[name], (*path, name))
        elif isinstance(value, list) and "items" in schema:
            for number, item in enumerate(value):
                yield from self._below(schema["items"], item, (*path, number))

    def _marked_members(self, schema: Schema) -> list[tuple[str, Schema]]:
        key = id(schema)
        if key not in self._members:
            members = schema.get("properties", {}).items()
            self._members[key] = [(name, node) for name, node in members if self._has_marks(node, frozenset())]
        return self._members[key]

    def _has_marks(self, node: Schema, above: frozenset[int]) -> bool:
        """Whether a mark stands anywhere below; remembered, since most fields have none."""
        schema = resolve(self._document, node)
        key = id(node)
        if key not in self._marked:
            if id(schema) in above:
                return False
            below = [*union(schema), *schema.get("properties", {}).values()]
            if "items" in schema:
                below.append(schema["items"])
            here = above | {id(schema)}
            self._marked[key] = (
                "x-feature" in node or "x-feature" in schema or any(self._has_marks(inner, here) for inner in below)
            )
        return self._marked[key]
