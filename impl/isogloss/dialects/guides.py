"""From fields that say what a text must follow to a guide for the engine, and from its refusal to a fault."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from isogloss_spec.faults import Fault
from typing_extensions import ReadOnly, TypedDict

from isogloss.engine.api import Guide, GuideError


class GuidedFields(TypedDict):
    """vLLM's fields; at most one is given."""

    guided_json: ReadOnly[str | Mapping[str, object] | None]
    guided_regex: ReadOnly[str | None]
    guided_choice: ReadOnly[Sequence[str] | None]
    guided_grammar: ReadOnly[str | None]


class NamedSchema(TypedDict):
    """OpenAI's `json_schema`."""

    schema: ReadOnly[Mapping[str, object]]


class TextFormat(TypedDict):
    """OpenAI's `response_format` without any demand."""

    type: ReadOnly[Literal["text"]]


class JsonObjectFormat(TypedDict):
    """OpenAI's `response_format` for any object."""

    type: ReadOnly[Literal["json_object"]]


class JsonSchemaFormat(TypedDict):
    """OpenAI's `response_format` with a schema."""

    type: ReadOnly[Literal["json_schema"]]
    json_schema: ReadOnly[NamedSchema]


ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat


@dataclass(frozen=True, slots=True)
class Guided:
    """A guide and the field that it came from."""

    guide: Guide
    param: str
    fault: str
    """The dialect's fault for a guide that cannot be followed; its `reasons` have a text for each GuideFlaw."""

    def refusal(self, error: GuideError) -> Fault:
        """The fault for what the engine says about the guide."""
        return refusal("guided_whitespace_pattern" if error.whitespace else self.param, self.fault, error)


def refusal(param: str, fault: str, error: GuideError) -> Fault:
    """The fault for a guide that cannot be followed, which came from this field."""
    return Fault(fault, param=param, values={"reason": error.flaw})


def guided_fields(fields: GuidedFields, fault: str, *, below: str = "", whitespace: str | None = None) -> Guided | None:
    """What vLLM's fields ask for; `below` is the path of the object that holds them, with a dot."""
    if fields["guided_json"] is not None:
        return Guided(_schema(fields["guided_json"], whitespace), f"{below}guided_json", fault)
    if fields["guided_regex"] is not None:
        return Guided(Guide("regex", fields["guided_regex"]), f"{below}guided_regex", fault)
    if fields["guided_choice"] is not None:
        return Guided(Guide("choice", choices=tuple(fields["guided_choice"])), f"{below}guided_choice", fault)
    if fields["guided_grammar"] is not None:
        return Guided(Guide("grammar", fields["guided_grammar"]), f"{below}guided_grammar", fault)
    return None


def response_format(form: ResponseFormat | None, fault: str) -> Guided | None:
    """What OpenAI's field asks for."""
    if form is None or form["type"] == "text":
        return None
    if form["type"] == "json_object":
        return Guided(Guide("json_object"), "response_format", fault)
    return Guided(_schema(form["json_schema"]["schema"], None), "response_format", fault)


def _schema(schema: str | Mapping[str, object], whitespace: str | None) -> Guide:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return Guide("json_schema", text, whitespace=whitespace)
