"""Valid fields beside a refused body: whatever stands there, the error must not move.

A server may forget a check beside one certain field, or where it streams. Each refused body therefore meets one field
of the document, another one each time, and then as many at once as combine.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from isogloss_spec.ledger import Entry
from isogloss_spec.pairs import NoPair, Pairs
from isogloss_spec.rules import RuleError

from isogloss_conformance.client import post
from isogloss_conformance.forecast import Forecast, Forecaster
from isogloss_conformance.session import Session

Json = Any
Field = tuple[str, Json]
Verdict = tuple[bool, tuple[tuple[str, str | None, str | None], ...]]
FIRST = "stream"
"""The field that all others must combine with in a crowd: a refused stream is answered like any other call."""


class Bystanders:
    """The optional fields of the main operation that the server takes, each with a valid value."""

    def __init__(self, session: Session, forecaster: Forecaster, pairs: Pairs) -> None:
        self._session = session
        self._forecaster = forecaster
        self._pairs = pairs
        self._short = {**session.minimal, "max_tokens": 1}

    def beside(self, entry: Entry, body: Mapping[str, Json], number: int) -> Iterator[Json]:
        """A refused body beside one field, then beside many; `number` is its place among those of the entry."""
        verdict = self._verdict(body)
        start = zlib.crc32(entry.id.encode()) + number
        others = _from([field for field in self._fields if field[0] not in body], start)
        yield from _first(variant for field in others if (variant := self._with(body, verdict, [field])))
        crowded = self._crowded(dict(body), verdict, self._crowd)
        if crowded != body:
            yield crowded

    @cached_property
    def _fields(self) -> Sequence[Field]:
        """What goes beside others. A field that the server refuses alone is found by the check of its own entry."""
        found: dict[str, Json] = {}
        for body in self._accepted():
            added = {name: value for name, value in body.items() if name not in self._short}
            if len(added) == 1 and None not in added.values() and not added.keys() & found.keys():
                found |= added
        return [field for field in found.items() if self._is_taken([field])]

    @cached_property
    def _crowd(self) -> Sequence[Field]:
        """Fields that combine with a plain call; none if the server refuses them together."""
        first = [field for field in self._fields if field[0] == FIRST]
        verdict = self._verdict(self._short)
        crowd = self._crowded(self._short, verdict, [*first, *self._fields])
        fields = [(name, value) for name, value in crowd.items() if name not in self._short]
        return fields if self._is_taken(fields) else []

    def _accepted(self) -> Iterator[Mapping[str, Json]]:
        for entry in self._session.entries:
            if entry.kind != "fault":
                try:
                    yield from (body for body in self._pairs.of(entry).accept if isinstance(body, dict))
                except NoPair:
                    continue

    def _is_taken(self, fields: Iterable[Field]) -> bool:
        body = {**self._short, **dict(fields)}
        verdict = self._verdict(body)
        if verdict is None or not verdict[0]:
            return False
        return self._session.client.send(post(self._session.main.path, body)).status == 200

    def _crowded(self, body: dict[str, Json], verdict: Verdict | None, fields: Sequence[Field]) -> dict[str, Json]:
        """The body with all fields that leave its verdict as it is; those that do not are looked for by halves."""
        if not fields:
            return body
        together = self._with(body, verdict, fields)
        if together is not None or len(fields) == 1:
            return together or body
        half = len(fields) // 2
        return self._crowded(self._crowded(body, verdict, fields[:half]), verdict, fields[half:])

    def _with(
        self, body: Mapping[str, Json], verdict: Verdict | None, fields: Iterable[Field]
    ) -> dict[str, Json] | None:
        """The body with fields that it lacks; None if there are none, or if they change the verdict."""
        variant = {**dict(fields), **body}
        if verdict is None or len(variant) == len(body) or self._verdict(variant) != verdict:
            return None
        return variant

    def _verdict(self, body: Json) -> Verdict | None:
        """What may be answered; None if that cannot be said."""
        try:
            return _compared(self._forecaster.of(body))
        except RuleError:  # the body lacks what a rule reads
            return None


def _compared(forecast: Forecast) -> Verdict:
    return forecast.success, tuple((fault.name, fault.param, fault.entry) for fault in forecast.faults)


def _from(fields: Sequence[Field], start: int) -> Iterator[Field]:
    """All fields, each start with another one."""
    return (fields[(start + step) % len(fields)] for step in range(len(fields)))


def _first(variants: Iterator[Json]) -> Iterator[Json]:
    for variant in variants:
        yield variant
        return
