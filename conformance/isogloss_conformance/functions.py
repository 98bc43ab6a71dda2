"""Functions that the suite offers to models, and scripts of calls for engines that follow them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema_rs import Draft202012Validator

Json = Any
ENOUGH = 256
"""Tokens in which the weakest model ends a call whose form is forced."""
SCHEMAS: Mapping[str, Json] = {
    "weather": {
        "type": "object",
        "properties": {
            "unit": {"enum": ["celsius", "kelvin"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["unit", "days"],
    },
    "clock": {"type": "object", "properties": {"winter": {"type": "boolean"}}, "required": ["winter"]},
}
"""What arguments must be, by function. Small, so that a model that is led by them comes to an end."""
SAID = "Well now"
TWO_CALLS: Mapping[str, Json] = {
    "tokens": ["Well", " now"],
    "tool_calls": [
        {"name": "weather", "arguments": '{"unit": "celsius", "days": 2}'},
        {"name": "clock", "arguments": '{"winter": true}'},
    ],
}
"""A text, then two calls."""
STRANGE_CALL: Mapping[str, Json] = {"tool_calls": [{"name": "weather", "arguments": '{"wind": 1}'}]}
"""A call whose arguments are not those of its function."""
THOUGHT: Mapping[str, Json] = {"tokens": ["<think>", "\n", "hm", " hm", "\n", "</think>", "\n\n", "Yes", " no"]}
"""A thought as most families mark it, then a text."""


def tool(name: str, *, strict: bool = False) -> dict[str, Json]:
    """A function as a request offers it."""
    function = {"name": name, "description": f"Tells about {name}.", "parameters": SCHEMAS[name]}
    return {"type": "function", "function": {**function, "strict": True} if strict else function}


TOOLS = [tool(name) for name in SCHEMAS]


AT_ONCE: Mapping[str, Json] = {"chat_template_kwargs": {"enable_thinking": False}}
"""Keeps a model that can think from it, so that its call is not cut."""


def named(name: str) -> dict[str, Json]:
    """The choice of one function."""
    return {"type": "function", "function": {"name": name}}


def part_of(call: Mapping[str, Json], member: str) -> Json:
    """The name or the arguments of a call; None if it has none."""
    function = call.get("function")
    return function.get(member) if isinstance(function, Mapping) else None


def misfit(call: Mapping[str, Json], *, closed: bool = False) -> str | None:
    """What is wrong with a whole call, in words. `closed` forbids arguments that the schema does not name."""
    name, arguments = str(part_of(call, "name")), part_of(call, "arguments")
    if name not in SCHEMAS:
        return f"a call of {name} came, which nobody offered"
    if not isinstance(arguments, str):
        return f"the arguments of {name} are no text: {arguments!r}"
    try:
        value = json.loads(arguments)
    except ValueError:
        return f"the arguments of {name} are no JSON text: {arguments!r}"
    schema = {**SCHEMAS[name], "additionalProperties": False} if closed else SCHEMAS[name]
    fits = Draft202012Validator(schema).is_valid(value)
    return None if fits else f"the arguments of {name} do not fit its schema: {arguments!r}"
