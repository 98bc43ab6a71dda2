"""The faults: for each that an operation names, a request that must be answered with it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from isogloss_spec.document import Operation, operations, request_schema_name
from isogloss_spec.faults import Fault
from isogloss_spec.ledger import Entry
from isogloss_spec.pairs import NoPair, Pairs

from isogloss_conformance.checks import Check
from isogloss_conformance.client import Request, post
from isogloss_conformance.discover import script_header
from isogloss_conformance.exchange import Exchange, only
from isogloss_conformance.faults.media_refusals import MediaRefusals
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.oracle import GUIDE_FAULT
from isogloss_conformance.patience import Flood, slow_request
from isogloss_conformance.requirements import requirement
from isogloss_conformance.results import Outcome, Status, heaviest
from isogloss_conformance.rules.beyond import bodies_beyond
from isogloss_conformance.rules.bodies import Bodies
from isogloss_conformance.session import Session

Json = Any
NOBODY = "no-such-model"
NOWHERE = "/v1/no-such-path"
BROKEN = (
    b"",
    b'{"model": ',
    b"{'model': 1}",
    b'{"model": "\xff"}',
    b'{"seed": NaN}',
    b'{"seed": 1, "seed": 2}',
    b"[" * 100_000,
    b'{"seed": ' + b"9" * 5000 + b"}",
)
"""Bodies that are no JSON text of ours: empty, cut, wrong quotes, not UTF-8, no number, a name twice, deep, endless."""
BEHIND = (b" x", b"{}", b",")
"""What may not stand behind a valid body."""
OTHER_TYPES = ("text/plain", "text/json", "application/jsonx", "application/json-seq", "application/problem+json")
"""Media types that are not that of the document, near misses among them."""
GUIDES: tuple[dict[str, Json], ...] = (
    {"guided_regex": "("},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "nonsense"}}}},
)
"""Guides that no library can follow, each in one field."""
MEDIA_FAULT = "media_refused"
Probe = Callable[[Operation], Iterator[Outcome]]


class FaultsStep:
    """Checks for every fault of every operation, and one for paths that lead nowhere."""

    name = "faults"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)
        self._pairs = Pairs(session.document, session.main.id, model=session.facts.model)
        self._minimal = {**session.minimal, "max_tokens": 1}
        self._bodies = Bodies(self._forecaster.judge, session.request_schema["properties"], session.facts.model)
        self._flood = Flood(session)
        self._media = MediaRefusals(session, self._exchange, self._forecaster)
        self._probes: Mapping[str, Probe] = {
            "malformed_json": self._malformed,
            "unsupported_media_type": self._media_types,
            "body_too_large": self._too_large,
            "unknown_model": self._unknown_model,
            "unsupported_feature": self._unsupported_feature,
            "unauthorized": self._unauthorized,
            "method_not_allowed": self._method,
            "engine_refused": self._engine_refused,
            "engine_failure": self._engine_failure,
            "timeout": self._timeout,
            "quota_exceeded": partial(self._flooded, "quota_exceeded"),
            "overloaded": partial(self._flooded, "overloaded"),
        }

    def checks(self) -> list[Check]:
        """A check for each fault, in the ledger's order, and that for unknown paths."""
        found = [self._check(entry) for entry in self._session.entries if entry.kind == "fault"]
        if "not_found" in self._session.faults:
            found.append(self._not_found())
        return found

    def _check(self, entry: Entry) -> Check:
        sentence = requirement(entry, self._session.faults, [])
        return Check(entry.id, self.name, sentence, partial(self._look, entry), entry.level, entry.source)

    def _look(self, entry: Entry) -> Outcome:
        operation = self._session.operations[entry.operation]
        probe = self._probes.get(entry.keyword)
        if probe is not None:
            return heaviest(probe(operation))
        if entry.keyword.endswith(GUIDE_FAULT):
            return heaviest(self._guides(entry.keyword, operation))
        if entry.keyword.endswith(MEDIA_FAULT):
            return heaviest(self._media.outcomes(entry.keyword, operation))
        if request_schema_name(self._session.document, operation) is None:
            return self._exchange.refused(_plain(operation), operation, Fault(entry.keyword))
        return heaviest(self._by_rule(entry, operation))

    def _not_found(self) -> Check:
        sentence = f"A path that leads nowhere is answered with {self._session.faults.status('not_found')}."
        return Check(f"{self._session.dialect}/fault/not_found", self.name, sentence, self._nowhere, "core", "seed")

    def _nowhere(self) -> Outcome:
        nowhere = Operation("nowhere", "get", NOWHERE, {})
        return self._exchange.refused(Request("GET", NOWHERE, headers={}), nowhere, Fault("not_found"))

    def _by_rule(self, entry: Entry, operation: Operation) -> Iterator[Outcome]:
        """The first rule that costs this fault, broken."""
        for rule in self._session.entries:
            if rule.kind == "fault" or rule.fault != entry.keyword:
                continue
            for body in self._refused_by(rule):
                forecast = self._forecaster.meant(rule, body)
                if [fault.name for fault in forecast.faults] == [entry.keyword] and not forecast.success:
                    yield self._exchange.ask(post(operation.path, self._bodies.short(rule, body)), operation, forecast)
                    return
        yield _unprovable("no body is known that ends in this fault on every server")

    def _refused_by(self, rule: Entry) -> tuple[Json, ...]:
        try:
            refused = self._pairs.of(rule).reject
        except NoPair:
            return ()
        return refused or tuple(bodies_beyond(self._session, self._forecaster, rule))

    def _malformed(self, operation: Operation) -> Iterator[Outcome]:
        valid = json.dumps(self._minimal).encode()
        for body in (*BROKEN, *(valid + rest for rest in BEHIND), valid[:-1] + b",}"):
            yield self._exchange.refused(Request("POST", operation.path, body), operation, Fault("malformed_json"))

    def _media_types(self, operation: Operation) -> Iterator[Outcome]:
        body = json.dumps(self._minimal).encode()
        others = [(body, {"Content-Type": other}) for other in OTHER_TYPES]
        packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        for sent, headers in (*others, (body, {}), (gzip.compress(body), packed)):
            request = Request("POST", operation.path, sent, headers)
            yield self._exchange.refused(request, operation, Fault("unsupported_media_type"))

    def _too_large(self, operation: Operation) -> Iterator[Outcome]:
        """Blanks behind a valid body, up to the limit and one byte beyond."""
        if operation.id != self._session.main.id:
            yield _unprovable("the operation may answer before it reads a body")
            return
        limit: int = self._session.document["x-limits"]["body"]
        padded = json.dumps(self._minimal).encode().ljust(limit)
        yield self._exchange.ask(Request("POST", operation.path, padded), operation, self._forecaster.of(self._minimal))
        fault = Fault("body_too_large", values={"limit": limit})
        yield self._exchange.refused(Request("POST", operation.path, padded + b" "), operation, fault)

    def _unknown_model(self, operation: Operation) -> Iterator[Outcome]:
        for more in ({}, {"stream": True}):  # an error before the first event is no event
            body = {**self._minimal, "model": NOBODY, **more}
            yield self._exchange.ask(post(operation.path, body), operation, self._forecaster.of(body))

    def _unsupported_feature(self, operation: Operation) -> Iterator[Outcome]:
        for entry in self._session.entries:
            for body in self._lacking(entry):
                yield self._exchange.ask(post(operation.path, body), operation, self._forecaster.of(body))
                return
        yield _unprovable("the server offers every feature of the document")

    def _lacking(self, entry: Entry) -> Iterator[Json]:
        """Accepted bodies of an entry that need what this server lacks."""
        if set(entry.features) - self._session.facts.features:
            try:
                accepted = self._pairs.of(entry).accept
            except NoPair:
                return
            yield from (body for body in accepted if self._forecaster.of(body).lacks_feature)

    def _guides(self, fault: str, operation: Operation) -> Iterator[Outcome]:
        for guide in GUIDES:
            body = {**self._minimal, **guide}
            forecast = self._forecaster.of(body)
            if any(allowed.name in (fault, "unsupported_feature") for allowed in forecast.faults):
                (param,) = guide
                meant = forecast if forecast.lacks_feature else only(Fault(fault, param=param, path=(param,)))
                yield self._exchange.ask(post(operation.path, body), operation, meant)

    def _unauthorized(self, operation: Operation) -> Iterator[Outcome]:
        if not self._session.client.keyed:
            yield _unprovable("no key was given, so that the server may take every caller")
            return
        request = _plain(operation)
        yield self._exchange.refused(request, operation, Fault("unauthorized"), with_key=False)
        wrong = Request(
            request.method, request.path, request.body, {**request.headers, "Authorization": "Bearer wrong"}
        )
        yield self._exchange.refused(wrong, operation, Fault("unauthorized"), with_key=False)

    def _method(self, operation: Operation) -> Iterator[Outcome]:
        known = {found.method for found in operations(self._session.document) if found.path == operation.path}
        for method in sorted({"get", "delete", "put"} - known):
            request = Request(method.upper(), operation.path, headers={})
            yield self._exchange.refused(request, operation, Fault("method_not_allowed"))

    def _engine_refused(self, operation: Operation) -> Iterator[Outcome]:
        yield from self._scripted(operation, [], "engine_refused")

    def _engine_failure(self, operation: Operation) -> Iterator[Outcome]:
        if operation.id == self._session.main.id:
            yield from self._scripted(operation, {"fail_after": 0}, "engine_failure")
        else:
            yield _unprovable("no request makes this operation fail")

    def _scripted(self, operation: Operation, script: Json, fault: str) -> Iterator[Outcome]:
        if self._session.facts.scripted:
            request = post(operation.path, self._session.minimal, script_header(script))
            yield self._exchange.refused(request, operation, Fault(fault))
        else:
            yield _unprovable("it takes an engine that follows scripts")

    def _timeout(self, operation: Operation) -> Iterator[Outcome]:
        patience = self._session.options.patience
        if patience:
            request = post(operation.path, self._session.minimal)
            answer = slow_request(self._session.client, request, patience)
            yield self._exchange.judged(request, answer, operation, only(Fault("timeout")))
        else:
            yield _unprovable("it takes the server's patience: give --patience")

    def _flooded(self, fault: str, operation: Operation) -> Iterator[Outcome]:
        if operation.id != self._session.main.id:
            yield _unprovable("no request makes this operation refuse")
            return
        if not self._session.options.flood:
            yield _unprovable("it takes many calls at once: give --flood")
            return
        status = self._session.faults.status(fault)
        met = self._flood.met(status)
        if met is None:
            yield _unprovable(f"{self._session.options.flood} calls at once were not refused with {status}")
        else:
            yield self._exchange.judged(*met, operation, only(Fault(fault, values={"retry_after": 1})))


def _plain(operation: Operation) -> Request:
    """The operation, asked with an empty object where it takes a body."""
    if operation.method == "get":
        return Request("GET", operation.path, headers={})
    return post(operation.path, {})


def _unprovable(reason: str) -> Outcome:
    return Outcome(Status.SKIP, got=f"unprovable: {reason}")
