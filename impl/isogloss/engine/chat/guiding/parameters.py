"""The schema of a function's arguments, as strict calls follow it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from isogloss.engine.api import GuideError
from isogloss.engine.chat.calls import Function

_OPEN = frozenset(
    "$ref $dynamicRef allOf anyOf oneOf if then else dependentSchemas additionalProperties "
    "unevaluatedProperties patternProperties".split()
)
"""Keywords beside which a schema is not closed: it says so itself, or its properties are spread over several."""
_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_LISTS = ("prefixItems", "anyOf", "oneOf")
_SINGLE = ("items", "additionalProperties")
CHOICES = ("anyOf", "oneOf")
MIXED = frozenset(("$ref", "$dynamicRef", "$recursiveRef", "allOf", *CHOICES, "not", "if"))
"""Keywords with which a schema says more elsewhere."""
_MOST_STEPS = 8
"""Schemas inside each other that are looked into."""
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
    ((list, tuple), "array"),
    (object, "object"),
)
_NO_OBJECTS = ("array", "boolean", "integer", "null", "number", "string")


def arguments_schema(function: Function) -> dict[str, Any]:
    """The schema of the arguments. An object that says nothing of additional properties has none.

    Raises GuideError for a schema that takes no object, nests deeply or is no JSON.
    """
    parameters = function.parameters or {}
    kinds = parameters.get("type", "object")
    known = kinds if isinstance(kinds, list) else [kinds]
    if known and all(kind in _NO_OBJECTS for kind in known):
        raise GuideError("unsatisfiable")
    return closed({**parameters, "type": "object" if "object" in known else kinds})


def closed(schema: Mapping[str, object]) -> dict[str, Any]:
    """A copy of a schema whose objects take no properties but those they tell of."""
    copy: dict[str, Any] = json.loads(schema_text(schema))
    for node in _schemas(copy):
        if (node.get("type") == "object" or "properties" in node) and not _OPEN & node.keys():
            node["additionalProperties"] = False
    return copy


def schema_text(schema: object) -> str:
    """A schema as JSON. Raises GuideError for one that nests deeply or is none."""
    try:
        return json.dumps(schema, allow_nan=False)
    except RecursionError as error:
        raise GuideError("too_complex") from error
    except (ValueError, TypeError) as error:
        raise GuideError("invalid") from error


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema and those inside it that stand on their own, each before the ones inside it."""
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield node
        waiting += [node.get(key) for key in _SINGLE]
        for key in (*_MAPS, *_LISTS):
            inner = node.get(key)
            waiting += inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()


def schema_of(function: Function, name: str) -> object:
    """What the parameters of a function say of one argument; None if they do not tell."""
    whole = whole_schema(function.parameters or {})
    known = whole.get("properties")
    more = whole.get("additionalProperties")
    return known[name] if isinstance(known, Mapping) and name in known else more


def whole_schema(schema: Mapping[str, object]) -> Mapping[str, object]:
    """The same schema without a reference at its top, if that leads into its own definitions and nothing clashes."""
    for _ in range(_MOST_STEPS):
        meant = _meant(schema["$ref"], schema) if "$ref" in schema else None
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if not isinstance(meant, Mapping) or any(rest.get(key, value) != value for key, value in meant.items()):
            break
        schema = {**meant, **rest}
    return schema


def takes_text(function: Function, name: str) -> bool:
    """Whether an argument of a function takes texts alone, as far as the schema tells."""
    schema = schema_of(function, name)
    return isinstance(schema, Mapping) and is_text(schema)


def is_text(schema: Mapping[str, object]) -> bool:
    """Whether a schema takes texts alone and says itself all that it says of them."""
    chosen = "type" not in schema and "enum" in schema and options_of(schema) == schema["enum"] != []
    return (schema.get("type") == "string" or chosen) and not MIXED & schema.keys()


def options_of(schema: Mapping[str, object]) -> list[str] | None:
    """The texts among the values that a schema names; None if it names none."""
    options = schema.get("enum")
    if "const" not in schema:
        return [option for option in options if isinstance(option, str)] if isinstance(options, list) else None
    only = schema["const"]
    return [only] if isinstance(only, str) and (not isinstance(options, list) or only in options) else []


def kinds_of(function: Function, name: str) -> frozenset[str]:
    """The types of JSON that an argument of a function takes, as far as the schema tells; none if it does not tell."""
    return _kinds(schema_of(function, name), function.parameters or {}, _MOST_STEPS) or frozenset()


def _kinds(schema: object, whole: Mapping[str, object], steps: int) -> frozenset[str] | None:
    """None if it does not tell."""
    if not isinstance(schema, Mapping) or not steps:
        return None
    if "$ref" in schema:
        return _kinds(_meant(schema["$ref"], whole), whole, steps - 1)
    choices = next((schema[key] for key in CHOICES if key in schema), None)
    if isinstance(choices, list):
        told = [_kinds(choice, whole, steps - 1) for choice in choices]
        return frozenset().union(*(kinds for kinds in told if kinds)) if None not in told else None
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return frozenset(kind for kind in kinds if isinstance(kind, str))
    options = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not isinstance(kinds, str) and isinstance(options, list):
        return frozenset(kind_of(option) for option in options)
    return frozenset([kinds]) if isinstance(kinds, str) else None


def _meant(reference: object, whole: Mapping[str, object]) -> object:
    """What a reference into the definitions of the same schema means; None for any other."""
    place, _, name = str(reference).removeprefix("#/").partition("/")
    definitions = whole.get(place) if place in ("$defs", "definitions") else None
    return definitions.get(name) if isinstance(definitions, Mapping) else None


def kind_of(value: object) -> str:
    """The type of a value of JSON."""
    return next(kind for known, kind in _KINDS if isinstance(value, known))
