"""Reading documents, and following references inside a bundled one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from isogloss_spec.types import Document, Json, Schema

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


class DocumentError(Exception):
    """A document is not what it must be; the text says where."""


class _StrictLoader(yaml.SafeLoader):
    """YAML without duplicate keys: the second would silently win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Json]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise DocumentError(f"{key.start_mark}: key {key.value!r} occurs twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Json:
    """One YAML file. Raises DocumentError for a duplicate key."""
    with path.open(encoding="utf-8") as stream:
        return yaml.load(stream, Loader=_StrictLoader)  # noqa: S506 (a SafeLoader)


class Bundler:
    """Copies everything that a document refers to in other files into the document.

    A reference to a component of another file becomes a component here; a reference to anything else (a table of
    messages) is replaced by what it points at.
    """

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._main = path.name
        self._files: dict[str, Json] = {}
        self._origin: dict[tuple[str, str], str] = {}
        """The file of each component, in order of discovery."""

    def bundle(self) -> dict[str, Json]:
        """The document with every reference pointing into itself."""
        document = dict(self._file(self._main))
        components = document.pop("components", {})
        for kind, members in components.items():
            for name in members:
                self._want(kind, name, self._main)
        result: dict[str, Json] = self._resolve(document, self._main)
        result["components"] = {kind: {} for kind in components}
        done = 0
        while done < len(self._origin):
            (kind, name), file = list(self._origin.items())[done]
            source = look_up(self._file(file), f"/components/{kind}/{name}")
            result["components"].setdefault(kind, {})[name] = self._resolve(source, file)
            done += 1
        return result

    def _file(self, name: str) -> Json:
        if name not in self._files:
            self._files[name] = read_yaml(self._folder / name)
        return self._files[name]

    def _want(self, kind: str, name: str, file: str) -> None:
        node = look_up(self._file(file), f"/components/{kind}/{name}")
        where, _, pointer = str(node.get("$ref", "")).partition("#")
        if where and pointer == f"/components/{kind}/{name}":  # stands here only as a link to another file
            file = where
        if self._origin.setdefault((kind, name), file) != file:
            other = self._origin[kind, name]
            raise DocumentError(f"{other} and {file} both define components/{kind}/{name}")

    def _resolve(self, node: Json, file: str) -> Json:
        if isinstance(node, list):
            return [self._resolve(item, file) for item in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return {name: self._resolve(item, file) for name, item in node.items()}
        where, _, pointer = reference.partition("#")
        return self._reference(where or file, pointer, node)

    def _reference(self, file: str, pointer: str, node: dict[str, Json]) -> Json:
        steps = pointer.strip("/").split("/")
        if steps[0] != "components":
            return self._resolve(look_up(self._file(file), pointer), file)
        self._want(steps[1], steps[2], file)
        siblings = {name: item for name, item in node.items() if name != "$ref"}
        return {"$ref": "#" + pointer, **siblings}


def bundle(path: Path) -> dict[str, Json]:
    """A document file and what it refers to, as one mapping. Raises DocumentError."""
    return Bundler(path).bundle()


def look_up(document: Json, pointer: str) -> Json:
    """What a JSON pointer points at. Raises DocumentError."""
    node = document
    for step in pointer.strip("/").split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or key not in node:
            raise DocumentError(f"nothing at {pointer}")
        node = node[key]
    return node


def resolve(document: Document, schema: Schema) -> Schema:
    """The schema itself, or what its `$ref` points at."""
    while "$ref" in schema:
        schema = look_up(document, schema["$ref"][1:])
    return schema


class Operation(NamedTuple):
    """One operation of a document."""

    id: str
    method: str
    path: str
    node: Mapping[str, Json]

    @property
    def name(self) -> str:
        """The name that rule ids use: the path without its version, `/` as `.`."""
        return self.path.removeprefix("/v1").strip("/").replace("/", ".")


def operations(document: Document) -> Iterator[Operation]:
    """All operations, in the document's order."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield Operation(item[method]["operationId"], method, path, item[method])


def operation(document: Document, operation_id: str) -> Operation:
    """One operation by its id. Raises KeyError."""
    for candidate in operations(document):
        if candidate.id == operation_id:
            return candidate
    raise KeyError(operation_id)


def request_schema_name(document: Document, found: Operation) -> str | None:
    """The name of the component that describes an operation's JSON body, if it takes one."""
    content = found.node.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return None
    return component_name(content["application/json"]["schema"])


def component_name(schema: Schema) -> str:
    """The name of the component a schema refers to. Raises DocumentError if it is not a reference."""
    reference = str(schema.get("$ref", ""))
    if not reference.startswith("#/components/schemas/"):
        raise DocumentError(f"must be a reference to a component: {schema}")
    return reference.rsplit("/", 1)[1]
