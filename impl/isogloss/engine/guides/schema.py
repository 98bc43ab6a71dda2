"""JSON Schemas of requests: are they any?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from isogloss.engine.api import GuideError
from isogloss.engine.guides.patterns import is_flawed

_DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
}
PRIVATE = "x-guidance"
"""Options of the library in a schema, which would stand above what we promise."""
_NO_LEAP_SECOND = "^[^:]*:[^:]*:[0-5]"
_VALUES = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose values hold schemas by names of the request's."""
_IDLE: dict[str, tuple[object, ...]] = {
    "uniqueItems": (False,),
    "unevaluatedItems": (True, {}),
    "unevaluatedProperties": (True, {}),
    "propertyNames": (True, {}, {"type": "string"}),
    "dependencies": ({},),
    "patternProperties": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
}
"""Values with which keywords that the library lacks ask for nothing."""
FORMATS = frozenset(
    {
        *(
            "date-time",
            "date",
            "time",
            "duration",
            "email",
            "idn-email",
            "hostname",
            "idn-hostname",
            "ipv4",
            "ipv6",
            "uuid",
        ),
        *(
            "uri",
            "uri-reference",
            "iri",
            "iri-reference",
            "uri-template",
            "json-pointer",
            "relative-json-pointer",
            "regex",
        ),
    }
)
"""Those that JSON Schema defines. Others are remarks, as OpenAPI's `int32` and `password`."""
_NEWEST = "https://json-schema.org/draft/2020-12/schema"


def read_schema(text: str) -> dict[str, Any]:
    """The schema in a text, valid by its draft's meta-schema. Raises GuideError, and RecursionError for a deep one."""
    try:
        schema = json.loads(text, parse_constant=_no_constant)
        if not isinstance(schema, dict):
            raise GuideError("invalid")
        jsonschema_rs.meta.validate({**schema, "$schema": _draft(schema)})
    except ValueError as error:
        # Covers ValidationError and what is not JSON. The text is the request's, so it is not passed on.
        raise GuideError("invalid") from error
    for node in _objects(schema):
        _check(node)
    return schema


def without_leap_seconds(node: Any) -> Any:
    """A schema whose times have no second 60: the library takes it at any minute, and only few minutes have one."""
    if isinstance(node, list):
        return [without_leap_seconds(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {name: value if name in _VALUES else without_leap_seconds(value) for name, value in node.items()}
    if found.get("format") in ("date-time", "time"):
        found["allOf"] = [*found.get("allOf", ()), {"pattern": _NO_LEAP_SECOND}]
    return found


def without_idle_keywords(node: Any, *, named: bool = False) -> Any:
    """A schema without what asks for nothing, which clients write as a default. `named`: a map of schemas by names."""
    if isinstance(node, list):
        return [without_idle_keywords(item) for item in node]
    if not isinstance(node, dict):
        return node
    if named:
        return {name: without_idle_keywords(value) for name, value in node.items()}
    return {
        name: value if name in _VALUES else without_idle_keywords(value, named=name in _NAMED)
        for name, value in node.items()
        if not is_idle(name, value)
    }


def is_idle(name: str, value: object) -> bool:
    """Whether a keyword asks for nothing with this value."""
    return value not in FORMATS if name == "format" else value in _IDLE.get(name, ())


def _check(node: dict[str, Any]) -> None:
    if PRIVATE in node:
        raise GuideError("unsupported")
    patterns = [node.get("pattern"), *(node.get("patternProperties") or ())]
    if any(isinstance(pattern, str) and is_flawed(pattern) for pattern in patterns):
        raise GuideError("invalid")


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _objects(inner)


def _draft(schema: dict[str, Any]) -> str:
    """The draft that a schema names. Any other name would be looked up on the network, so it is refused."""
    name = schema.get("$schema", _NEWEST)
    if not isinstance(name, str) or name.removesuffix("#") not in _DRAFTS:
        raise GuideError("unsupported")
    return name


def _no_constant(name: str) -> object:
    raise ValueError(name)
