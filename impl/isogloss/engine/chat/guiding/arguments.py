"""The arguments of a function one by one, for forms that are no JSON: each is written by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from isogloss.engine.api import GuideError
from isogloss.engine.chat.calls import Function
from isogloss.engine.chat.guiding.parameters import CHOICES, MIXED, arguments_schema, is_text, whole_schema
from isogloss.engine.guides.schema import FORMATS, is_idle

_TOGETHER = MIXED | frozenset(
    "const enum minProperties maxProperties patternProperties propertyNames dependentRequired dependentSchemas "
    "dependencies".split()
)
"""Keywords that say something of all arguments together, which nothing but JSON as a whole can follow."""
_SHARED = ("$defs", "definitions", "$schema")
_WITHIN = ("#/$defs/", "#/definitions/")
"""How references begin that mean the same where an argument stands alone."""
_OF_TEXTS = frozenset(("const", "enum", "maxLength", "minLength", "pattern"))
_TEXT_AND_NULL = (["string", "null"], ["null", "string"])


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function."""

    name: str
    schema: Mapping[str, object]
    """Stands on its own."""
    required: bool

    @property
    def is_text(self) -> bool:
        """Whether it takes texts alone."""
        return is_text(self.schema)

    @property
    def is_free(self) -> bool:
        """Whether it takes any text and null."""
        return _is_optional_text(self.schema)


@dataclass(frozen=True, slots=True)
class Arguments:
    """All of them."""

    known: list[Argument]
    others: Mapping[str, object] | None = None
    """What each of any number of arguments follows whose names are the model's own; None if there are none."""


def arguments_of(function: Function, writable: Callable[[str], bool]) -> Arguments:
    """The arguments one by one: those that the schema names, or else such as it allows without a name.

    Raises GuideError for a schema that requires an argument that it does not allow, says more than what each argument
    follows and which are required, nests deeply or is no JSON, and for an argument whose name is not `writable`.
    """
    whole = whole_schema(arguments_schema(function))
    if whole["type"] != "object":
        raise GuideError("invalid")
    known, needed = _properties(whole), _required(whole)
    more = whole.get("additionalProperties", False)
    if more is False and not needed <= known.keys():
        raise GuideError("unsatisfiable")
    known |= dict.fromkeys(sorted(needed - known.keys()), more)
    _check_together(whole, len(needed), len(known))
    if not all(map(writable, known)) or not all(str(meant).startswith(_WITHIN) for meant in _references(whole)):
        raise GuideError("unsupported")
    shared = {key: whole[key] for key in _SHARED if key in whole}
    told = [
        Argument(name, _alone(schema, shared), name in needed)
        for name, schema in known.items()
        if schema is not False or name in needed
    ]
    return Arguments(told, None if known or more is False else _alone(more, shared))


def _check_together(whole: Mapping[str, Any], needed: int, known: int) -> None:
    """Counts that hold of whatever is written ask for nothing."""
    idle = {"minProperties"} if _at_most(whole.get("minProperties"), needed) else set()
    if known and _at_most(known, whole.get("maxProperties")):
        idle.add("maxProperties")
    if any(not is_idle(keyword, whole[keyword]) for keyword in (_TOGETHER - idle) & whole.keys()):
        raise GuideError("unsupported")


def _at_most(count: object, limit: object) -> bool:
    return isinstance(count, int | float) and isinstance(limit, int | float) and count <= limit


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
    if schema is False:
        raise GuideError("unsatisfiable")
    if schema is not True and not isinstance(schema, dict):
        raise GuideError("invalid")
    return {**schema, **shared} if isinstance(schema, dict) else {}


def _references(schema: Mapping[str, object]) -> Iterator[object]:
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield from [node["$ref"]] if "$ref" in node else []
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _is_optional_text(schema: Mapping[str, object]) -> bool:
    """Whether a schema says no more than that it takes texts and null."""
    choices = [schema[key] for key in CHOICES if key in schema]
    if len(choices) > 1 or len(MIXED & schema.keys()) > len(choices) or _limits(schema):
        return False
    if not choices:
        return schema.get("type") in _TEXT_AND_NULL
    told = choices[0] if isinstance(choices[0], list) and "type" not in schema else []
    plain = [part for part in told if isinstance(part, dict) and not MIXED & part.keys() and not _limits(part)]
    return len(plain) == len(told) and [part.get("type") for part in plain] in _TEXT_AND_NULL


def _limits(schema: Mapping[str, object]) -> bool:
    """Whether it says more of a text than that it is one."""
    return bool(_OF_TEXTS & schema.keys()) or schema.get("format") in (*FORMATS,)
