"""Asks the document what the answer to a request must be."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from isogloss_spec import ErrorAnswer, Fault, FaultTable, Judge
from isogloss_spec.document import operations, request_schema_name

Json = Any
GUIDE_FAULT = ".guide_invalid"
"""Ends the name of a dialect's fault for a guide that cannot be followed: only the engine can tell."""
COMPARED = ("object", "type", "param", "code", "error_type", "error", "loc")
"""Members of an error body that the document fixes; texts for people are free."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the document allows as the answer to one request."""

    fault: Fault | None
    """The fault that must be answered; None if the body is fine as far as can be known without the model."""
    answer: ErrorAnswer | None
    later: tuple[tuple[int, str | None], ...] = ()
    """Status and param of faults that only the server can know: rules of stage `prompt`, features."""


class Oracle:
    """Expectations for the operations of one document on one server.

    `models` are the names the server serves; `features` what it claims, or None if that is unknown.
    """

    def __init__(
        self, document: Mapping[str, Json], *, models: Container[str], features: Container[str] | None = None
    ) -> None:
        self._faults = FaultTable(document)
        self._judges = {
            (found.method, found.path): Judge(document, found.id, models=models, features=features)
            for found in operations(document)
            if request_schema_name(document, found) is not None
        }
        self._engine_faults = [name for name in document["x-faults"] if name.endswith(GUIDE_FAULT)]
        self._features_known = features is not None

    def expect(self, method: str, path: str, raw: bytes) -> Expected | None:
        """What a body must be answered with; None for an operation without a JSON body."""
        judge = self._judges.get((method.lower(), path))
        if judge is None:
            return None
        try:
            judge.check(raw)
        except Fault as fault:
            return Expected(fault, self._faults.render(fault))
        return Expected(None, None, tuple(self._later(judge)))

    def _later(self, judge: Judge) -> list[tuple[int, str | None]]:
        found = [(self._faults.status(rule.fault), rule.param) for rule in judge.rules if rule.stage == "prompt"]
        found += [(self._faults.status(name), None) for name in self._engine_faults]
        if not self._features_known and "unsupported_feature" in self._faults:
            found.append((self._faults.status("unsupported_feature"), None))
        return found


def difference(expected: Expected, status: int, body: Json) -> str | None:
    """How an answer departs from what was expected, in words; None if it does not."""
    if expected.fault is None or expected.answer is None:
        if status == 200 or any(allowed == status for allowed, _ in expected.later):
            return None
        return f"the document accepts this body, the server answered {status}"
    name = expected.fault.entry or expected.fault.name
    if status != expected.answer.status:
        return f"the document says {expected.answer.status} ({name}), the server answered {status}"
    wrong = _departs(expected.answer.body, body, "")
    return f"{wrong} ({name})" if wrong else None


def _departs(wanted: Json, got: Json, place: str) -> str | None:
    if isinstance(wanted, Mapping):
        if not isinstance(got, Mapping):
            return f"the error body's {place or 'top'} must be an object"
        for name, value in wanted.items():
            if name not in got:
                return f"the error body lacks {place}{name}"
            found = _departs(value, got[name], f"{place}{name}.") if _is_fixed(name, value) else None
            if found:
                return found
        return None
    if wanted != got:
        return f"the error body's {place.rstrip('.')} must be {wanted!r}, not {got!r}"
    return None


def _is_fixed(name: str, value: Json) -> bool:
    return isinstance(value, Mapping) or (name in COMPARED and not (name == "error" and isinstance(value, str)))
