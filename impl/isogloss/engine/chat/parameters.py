"""The schema of a function's arguments, as strict calls follow it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

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
_CHOICES = ("anyOf", "oneOf")
_PICKED = frozenset(("enum", "const"))
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


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function."""

    name: str
    schema: Mapping[str, object]
    """Stands on its own."""
    required: bool

    @property
    def options(self) -> Sequence[str]:
        """The texts that it is chosen from, if it is."""
        return _texts(self.schema)

    @property
    def is_text(self) -> bool:
        """Whether it takes texts alone, or any text and null."""
        return _is_text(self.schema) or _is_optional_text(self.schema)


def arguments_of(function: Function, writable: Callable[[str], bool]) -> list[Argument] | None:
    """The arguments one by one; None if the schema does not tell them in that way.

    Raises GuideError for a schema that requires an argument that it does not allow, nests deeply or is no JSON, and
    for an argument whose name is not `writable` in the form of the calls.
    """
    whole = arguments_schema(function)
    known, needed = _properties(whole), _required(whole)
    if not known and _OPEN & (function.parameters or {}).keys():
        return None
    if not all(map(writable, known)):
        raise GuideError("unsupported")
    if not needed <= known.keys():
        raise GuideError("unsatisfiable")
    shared: dict[str, object] = {key: whole[key] for key in ("$defs", "definitions", "$schema") if key in whole}
    return [Argument(name, _alone(schema, shared), name in needed) for name, schema in known.items()]


def _properties(schema: Mapping[str, object]) -> dict[str, object]:
    known = schema.get("properties", {})
    if not isinstance(known, dict):
        raise GuideError("invalid")
    return known


def _required(schema: Mapping[str, object]) -> frozenset[str]:
    needed = schema.get("required", [])
    if not isinstance(needed, list) or not all(isinstance(name, str) for name in needed):
        raise GuideError("invalid")
    return frozenset(needed)


def _alone(schema: object, shared: Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        raise GuideError("invalid")
    return {**shared, **schema}


def takes_text(function: Function, name: str) -> bool:
    """Whether an argument of a function takes texts alone, as far as the schema tells."""
    known = (function.parameters or {}).get("properties")
    schema = known.get(name) if isinstance(known, Mapping) else None
    return isinstance(schema, Mapping) and _is_text(schema)


def _is_text(schema: Mapping[str, object]) -> bool:
    return schema.get("type") == "string" or ("type" not in schema and bool(_texts(schema)))


def _is_optional_text(schema: Mapping[str, object]) -> bool:
    """Whether a schema says no more than that it takes texts and null."""
    choices = next((schema[key] for key in _CHOICES if key in schema), None)
    told = choices if isinstance(choices, list) else [{"type": schema.get("type")}]
    kinds = [choice.get("type") for choice in told if isinstance(choice, dict) and not _PICKED & choice.keys()]
    return not _PICKED & schema.keys() and kinds in (["string", "null"], ["null", "string"], [["string", "null"]])


def kinds_of(function: Function, name: str) -> frozenset[str]:
    """The types of JSON that an argument of a function takes, as far as the schema tells; none if it does not tell."""
    whole = function.parameters or {}
    known = whole.get("properties")
    schema = known.get(name) if isinstance(known, Mapping) else None
    return _kinds(schema, whole, _MOST_STEPS) or frozenset()


def _kinds(schema: object, whole: Mapping[str, object], steps: int) -> frozenset[str] | None:
    """None if it does not tell."""
    if not isinstance(schema, Mapping) or not steps:
        return None
    if "$ref" in schema:
        return _kinds(_meant(schema["$ref"], whole), whole, steps - 1)
    choices = next((schema[key] for key in _CHOICES if key in schema), None)
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


def _texts(schema: Mapping[str, object]) -> Sequence[str]:
    options = schema.get("enum")
    chosen = isinstance(options, list) and all(isinstance(option, str) for option in options)
    return cast("list[str]", options) if chosen else ()
