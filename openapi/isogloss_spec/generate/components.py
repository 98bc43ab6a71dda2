"""Which components a side of the wire needs, and the derived schemas of effective requests."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

from isogloss_spec.document import component_name, operations, request_schema_name, resolve
from isogloss_spec.json_types import union
from isogloss_spec.types import Document, Json, Schema


def request_roots(document: Document) -> list[str]:
    """Components that are bodies of requests."""
    names = (request_schema_name(document, found) for found in operations(document))
    return [name for name in dict.fromkeys(names) if name]


def response_roots(document: Document) -> list[str]:
    """Components that are answers or events of a stream, errors included."""
    names: dict[str, None] = {}
    for found in operations(document):
        for node in found.node["responses"].values():
            names.update(dict.fromkeys(answer_names(document, node)))
    return list(names)


def answer_names(document: Document, response: Schema) -> Iterator[str]:
    """The components of one response: of its JSON and of the events of its stream."""
    for media_type, media in resolve(document, response).get("content", {}).items():
        if media_type == "application/json":
            yield component_name(media["schema"])
        elif media_type == "text/event-stream":
            yield from event_names(document, media["schema"])


def event_names(document: Document, schema: Schema) -> Iterator[str]:
    """The components that the `data` of an event may hold, chunk first."""
    data = resolve(document, schema)["properties"]["data"]
    for branch in [data, *union(data)]:
        if "contentSchema" in branch:
            yield component_name(branch["contentSchema"])


def reachable(document: Document, roots: list[str]) -> dict[str, Schema]:
    """The components named and all they refer to, in the order of the document."""
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    seen: dict[str, None] = {}
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen[name] = None
            pending.extend(_references(schemas[name]))
    return {name: schema for name, schema in schemas.items() if name in seen}


def _references(node: Json) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield component_name(node)
        for item in node.values():
            yield from _references(item)


def effective_components(document: Document) -> dict[str, Schema]:
    """The components of requests as `call.eff` has them: every member there, null only without a default."""
    roots = request_roots(document)
    found = {name: copy.deepcopy(dict(schema)) for name, schema in reachable(document, roots).items()}
    pending = list(roots)
    while pending:
        schema = found[pending.pop()]
        required = schema.get("required", ())
        for name, node in schema.get("properties", {}).items():
            inner = _only_object(document, node)
            if inner is not None:
                pending.append(inner)
            if name not in required:
                fixed = node.get("x-default") is not None or "x-computed" in node
                schema["properties"][name] = without_null(node) if fixed else with_null(node)
        schema["required"] = list(schema.get("properties", {}))
    return reachable({"components": {"schemas": found}}, roots)


def _only_object(document: Document, node: Schema) -> str | None:
    names = [
        component_name(branch)
        for branch in [node, *union(node)]
        if "$ref" in branch and resolve(document, branch).get("properties")
    ]
    return names[0] if len(names) == 1 else None


def with_null(node: Schema) -> Schema:
    """The same schema, admitting null."""
    if "$ref" in node:
        return {"anyOf": [node, {"type": "null"}]}
    if "anyOf" in node:
        return {**without_null(node), "anyOf": [*without_null(node)["anyOf"], {"type": "null"}]}
    types = node["type"] if isinstance(node["type"], list) else [node["type"]]
    return {**node, "type": [*(kind for kind in types if kind != "null"), "null"]}


def without_null(node: Schema) -> Schema:
    """The same schema, not admitting null."""
    if "anyOf" in node:
        return {**node, "anyOf": [branch for branch in node["anyOf"] if branch != {"type": "null"}]}
    if isinstance(node.get("type"), list):
        kept = [kind for kind in node["type"] if kind != "null"]
        return {**node, "type": kept[0] if len(kept) == 1 else kept}
    return node
