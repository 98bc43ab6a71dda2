"""Faults by name, and what the document says each one looks like on the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from isogloss_spec.types import Document, Json

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_LONGEST_NAME = 64


class Fault(Exception):
    """A reason to refuse a request, by the name that `x-faults` gives it.

    Raised by anyone who wants to refuse; status, headers and body stand in the document. `values` are for its
    templates: numbers, names from the document, key names. Never text of the request.
    """

    def __init__(
        self,
        name: str,
        *,
        param: str | None = None,
        path: tuple[str | int, ...] = (),
        keyword: str | None = None,
        entry: str | None = None,
        values: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(name)
        self.name = name
        self.param = param
        self.path = path
        self.keyword = keyword
        """The schema keyword or rule that was broken."""
        self.entry = entry
        """The id of the broken rule in the ledger, where one is known."""
        self.values: Mapping[str, Json] = values or {}


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A fault as the dialect shows it."""

    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)


class FaultTable:
    """The `x-faults` of one document."""

    def __init__(self, document: Document) -> None:
        self._faults: Mapping[str, Mapping[str, Json]] = document["x-faults"]
        self._bodies: Mapping[str, Json] = document["x-error-bodies"]

    def __contains__(self, name: object) -> bool:
        return name in self._faults

    def status(self, name: str) -> int:
        """The status of a fault. Raises KeyError for a name that the document lacks."""
        return int(self._faults[name]["status"])

    def render(self, fault: Fault, **extra: Json) -> ErrorAnswer:
        """Fill the dialect's template; `extra` holds what only the caller knows, such as `request_id`."""
        entry = self._faults[fault.name]
        values: dict[str, Json] = {
            **fault.values,
            **extra,
            "fault": fault.name,
            "status": entry["status"],
            "type": entry.get("type"),
            "code": entry.get("code"),
            "param": fault.param,
            "path": shown_path(fault.path) or "body",
            "loc": ["body", *fault.path],
            "keyword": fault.keyword or fault.name,
        }
        if "reasons" in entry and "reason" in values:
            values["reason"] = entry["reasons"][values["reason"]]
        values["message"] = fill(_template(entry, fault), values)
        headers = {name: str(fill(text, values)) for name, text in entry.get("headers", {}).items()}
        return ErrorAnswer(entry["status"], fill(self._bodies[entry["body"]], values), headers)


def _template(entry: Mapping[str, Json], fault: Fault) -> Json:
    per_keyword: Mapping[str, Json] = entry.get("messages", {})
    return per_keyword.get(fault.keyword or "", entry.get("message", ""))


def fill(template: Json, values: Mapping[str, Json]) -> Json:
    """Substitute `{name}`. A string that is one placeholder alone becomes the value itself."""
    if isinstance(template, dict):
        return {name: fill(item, values) for name, item in template.items()}
    if isinstance(template, list):
        return [fill(item, values) for item in template]
    if not isinstance(template, str):
        return template
    alone = _PLACEHOLDER.fullmatch(template)
    if alone:
        return values.get(alone[1])
    return _PLACEHOLDER.sub(lambda match: _shown(values.get(match[1])), template)


def _shown(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    if isinstance(value, float):
        return repr(value) if value % 1 else f"{value:.17g}"
    return str(value)


def shown_name(name: str) -> str:
    """A key name as an error may show it: printable, at most 64 characters."""
    clean = "".join(char if char.isprintable() else "?" for char in name[:_LONGEST_NAME])
    return clean if len(name) <= _LONGEST_NAME else clean[:-1] + "…"


def shown_path(path: tuple[str | int, ...]) -> str:
    """A path as people write it: `stream_options.include_usage`, `prompt[2]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else ("." if text else "") + shown_name(step)
    return text


def param_of(path: tuple[str | int, ...]) -> str | None:
    """The field a path belongs to: trailing positions in lists are left out."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return shown_path(path) or None
