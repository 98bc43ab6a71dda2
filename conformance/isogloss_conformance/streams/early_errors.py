"""Requests for a stream that a server can refuse at once: the answer is that of the same call without a stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from isogloss_spec.ledger import Entry
from isogloss_spec.pairs import NoPair, Pairs

from isogloss_conformance.client import post
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import LONGEST_TOKEN, Forecaster
from isogloss_conformance.results import Outcome, Status, heaviest
from isogloss_conformance.rules.bodies import SOON, Bodies
from isogloss_conformance.session import Session
from isogloss_conformance.streams.streamer import Streamer

Json = Any
NOBODY = "no-such-model"
BOUND = "maximum"


class EarlyErrors:
    """One request for each kind of refusal: a wrong type, an unknown model, bounds, rules, a context too long."""

    def __init__(self, session: Session, streamer: Streamer) -> None:
        self._session = session
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)
        self._pairs = Pairs(session.document, session.main.id, model=session.facts.model)
        self._shortener = Bodies(self._forecaster.judge, streamer.fields, session.facts.model)
        self._minimal = {**session.minimal, "max_tokens": 1}

    def look(self) -> Outcome:
        """Ask for all of them as streams."""
        bodies = chain(self._simple(), self._beyond_bounds(), self._against_rules())
        return heaviest(chain.from_iterable(map(self._refused, bodies)))

    def _refused(self, body: Json) -> Iterator[Outcome]:
        """How a stream is refused, if it must be. What a call without a stream gets wrong as well is no fault here."""
        streamed = {**body, "stream": True}
        if not self._must_refuse(streamed):
            return
        outcome = self._asked(streamed)
        if outcome.status is not Status.FAIL or self._asked(body).status is not Status.FAIL:
            yield outcome

    def _must_refuse(self, body: Json) -> bool:
        """Whether a body is wrong, and not only more than this server offers."""
        forecast = self._forecaster.of(body)
        return not forecast.success and not forecast.lacks_feature

    def _asked(self, body: Json) -> Outcome:
        main = self._session.main
        return self._exchange.ask(post(main.path, body), main, self._forecaster.of(body))

    def _simple(self) -> Iterator[Json]:
        yield {**self._minimal, "temperature": "hot"}
        yield {**self._minimal, "model": NOBODY}
        length = self._session.facts.context_length
        if length is not None:
            yield {**self._minimal, "max_tokens": length, "stop": SOON}
            if "messages" in self._minimal:
                content = "a" * (length * LONGEST_TOKEN)
                yield {**self._minimal, "messages": [{"role": "user", "content": content}]}

    def _beyond_bounds(self) -> Iterator[Json]:
        for entry in self._session.entries:
            if entry.operation == self._session.main.id and entry.keyword == BOUND:
                yield from self._bodies(entry)

    def _against_rules(self) -> Iterator[Json]:
        """The first rule of each stage that a stream can break."""
        stages: set[str] = set()
        for entry in self._session.entries:
            if entry.rule is not None and entry.rule["stage"] not in stages:
                for body in self._bodies(entry):
                    if self._must_refuse({**body, "stream": True}):
                        stages.add(entry.rule["stage"])
                        yield body

    def _bodies(self, entry: Entry) -> Iterator[Json]:
        """Bodies that break an entry, with little to generate for a server that takes them."""
        with suppress(NoPair):
            yield from (self._shortener.short(entry, body) for body in self._pairs.of(entry).reject)
