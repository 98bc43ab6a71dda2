"""Reads reports back. Files may be cut short, edited by hand, or something else altogether."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from isogloss_conformance.completeness import Completeness
from isogloss_conformance.reports.report import FORMAT, Header, Report
from isogloss_conformance.results import Result, Status

Json = Any
Line = dict[str, Json]
T = TypeVar("T", Header, Result, Completeness)
_ID_PARTS = 3
"""An id names its dialect, the operation or step, and what it is about."""


class ReportError(Exception):
    """A file is no report of ours. The text says what is wrong, in one line."""


def read(path: Path) -> Report:
    """The report in a file. Raises ReportError."""
    try:
        return _report(path.read_bytes().decode())
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeError) else error
        raise ReportError(f"{path} is no report: {why}") from None


def _report(text: str) -> Report:
    lines = [_line(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise ValueError("it is empty")
    header, *results, footer = lines if len(lines) > 1 else (*lines, {})
    if header.get("kind") != "header" or header.get("format") != FORMAT:
        raise ValueError(f"it does not begin with a header of format {FORMAT}")
    if footer.get("kind") != "footer":
        raise ValueError("it has no footer: the run was broken off, or the file is cut short")
    made = tuple(_result(number, line) for number, line in enumerate(results, 2))
    if not is_of(footer.get("seconds"), float):
        raise ValueError("the footer has no 'seconds'")
    if not is_of(footer.get("interrupted", False), bool):
        raise ValueError("the footer has an 'interrupted' of the wrong type")
    return Report(_header(header), made, _ledger(footer), footer["seconds"], footer.get("interrupted", False))


def _line(number: int, text: str) -> Line:
    try:
        line = json.loads(text)
        json.dumps(line, ensure_ascii=False).encode()  # half of a surrogate pair could not be shown
    except (ValueError, RecursionError):
        raise ValueError(f"line {number} is no JSON text") from None
    if not isinstance(line, dict):
        raise ValueError(f"line {number} is no JSON object")
    return line


def _header(line: Line) -> Header:
    made = _made(Header, {**line, "features": _tuple(line.get("features"))}, "the header")
    if not made.base_url:
        raise ValueError("the header names no server")
    return made


def _result(number: int, line: Line) -> Result:
    if line.get("kind") != "result":
        raise ValueError(f"line {number} is no result")
    if line.get("status") not in list(Status):
        raise ValueError(f"line {number} has an unknown status")
    made = _made(Result, {**line, "status": Status(line["status"])}, f"line {number}")
    if made.id.count("/") < _ID_PARTS - 1:
        raise ValueError(f"line {number} has no id of a check")
    return made


def _ledger(footer: Line) -> Completeness:
    found = footer.get("ledger")
    if not isinstance(found, dict):
        raise ValueError("the footer has no ledger")
    return _made(Completeness, {**found, "missing": _tuple(found.get("missing"))}, "the ledger")


def _tuple(value: Json) -> Json:
    return tuple(value) if isinstance(value, list) else value


def _made(kind: type[T], members: Line, where: str) -> T:
    """An object whose members have the types that it declares; others are left out. Raises ValueError."""
    hints = get_type_hints(kind)
    known = {field.name: members[field.name] for field in fields(kind) if field.name in members}
    wrong = next((name for name, value in known.items() if not is_of(value, hints[name])), None)
    if wrong is not None:
        raise ValueError(f"{where} has a {wrong!r} of the wrong type")
    try:
        return kind(**known)
    except TypeError:
        raise ValueError(f"{where} lacks members") from None


def is_of(value: Json, kind: Any) -> bool:
    """Whether a value is of a type that reports have."""
    origin = get_origin(kind)
    if origin in (types.UnionType, Union):
        return any(is_of(value, choice) for choice in get_args(kind))
    if origin is Literal:
        return value in get_args(kind)
    if origin is tuple:
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    if origin is not None:
        return isinstance(value, Mapping)
    return type(value) is kind
