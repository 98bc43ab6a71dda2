"""The rules step: for every entry of the ledger a body that it accepts and bodies that break it and nothing else.

That a body breaks only what it should has been proved with the judge before it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from isogloss_spec.json_types import types_of
from isogloss_spec.ledger import Entry
from isogloss_spec.pairs import NoPair, Pairs

from isogloss_conformance.checks import Check
from isogloss_conformance.client import post
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecast, Forecaster
from isogloss_conformance.requirements import requirement
from isogloss_conformance.results import Outcome, Status, heaviest
from isogloss_conformance.rules.beyond import bodies_beyond
from isogloss_conformance.rules.bodies import Bodies
from isogloss_conformance.rules.bystanders import Bystanders
from isogloss_conformance.rules.close import closer
from isogloss_conformance.rules.edges import Edge
from isogloss_conformance.session import Session

Json = Any


class RulesStep:
    """Checks for every entry about the body of the main operation."""

    name = "rules"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pairs = Pairs(session.document, session.main.id, model=session.facts.model)
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)
        self._bodies = Bodies(self._forecaster.judge, session.request_schema["properties"], session.facts.model)
        self._edge = Edge(session, self._forecaster)
        self._bystanders = Bystanders(session, self._forecaster, self._pairs)

    def checks(self) -> list[Check]:
        """A check for each entry, in the ledger's order."""
        return [self._check(entry) for entry in self._session.entries if entry.kind != "fault"]

    def _check(self, entry: Entry) -> Check:
        sentence = requirement(entry, self._session.faults, self._types(entry))
        return Check(entry.id, self.name, sentence, partial(self._look, entry), entry.level, entry.source)

    def _types(self, entry: Entry) -> list[str]:
        schema = entry.steps[-1].schema if entry.steps else {}
        return types_of(self._session.document, schema) if schema else ["object"]

    def _look(self, entry: Entry) -> Outcome:
        try:
            pair = closer(self._pairs.of(entry), self._session.document, self._forecaster.judge)
        except NoPair as reason:
            return Outcome(Status.SKIP, got=f"unprovable: {reason}")
        refused = pair.reject or tuple(bodies_beyond(self._session, self._forecaster, entry))
        outcomes = [
            *self._accepted(entry, pair.accept),
            *self._fitting(entry),
            *self._refused(entry, (*refused, *self._edge.refused(entry))),
        ]
        if entry.fault is not None and not refused:
            outcomes.append(Outcome(Status.SKIP, got="unprovable: no body is known to break this on this server"))
        return heaviest(outcomes)

    def _accepted(self, entry: Entry, bodies: Iterable[Json]) -> Iterator[Outcome]:
        for body in bodies:
            small = self._bodies.small(entry, body)
            yield self._sent(small, self._forecaster.of(small))

    def _fitting(self, entry: Entry) -> Iterator[Outcome]:
        """What just fits, told from tokens that were counted: the forecast alone would not know."""
        for body in self._edge.accepted(entry):
            small = self._bodies.small(entry, body)
            others = tuple(fault for fault in self._forecaster.of(small).faults if fault.entry != entry.id)
            yield self._sent(small, Forecast(True, others))

    def _refused(self, entry: Entry, bodies: Iterable[Json]) -> Iterator[Outcome]:
        for number, body in enumerate(bodies):
            forecast = self._forecaster.meant(entry, body)
            if not _is_meant(entry, forecast):
                yield Outcome(
                    Status.ERROR, got=f"the document's own body does not break this rule alone: {body!r:.200}"
                )
                continue
            short = self._bodies.short(entry, body)
            yield self._sent(short, forecast)
            if isinstance(short, dict):
                yield from (self._sent(variant, forecast) for variant in self._bystanders.beside(entry, short, number))

    def _sent(self, body: Json, forecast: Forecast) -> Outcome:
        return self._exchange.ask(post(self._session.main.path, body), self._session.main, forecast)


def _is_meant(entry: Entry, forecast: Forecast) -> bool:
    """Whether a body is refused for the entry's own sake, or because a feature that it needs is not there."""
    if forecast.success or not forecast.faults:
        return False
    fault = forecast.faults[0]
    return forecast.lacks_feature or (fault.name == entry.fault and fault.entry in (None, entry.id))
