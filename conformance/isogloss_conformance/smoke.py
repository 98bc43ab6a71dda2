"""The smoke step: whether the server is there and speaks the dialect at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from isogloss_spec.document import Operation
from isogloss_spec.pairs import UNKNOWN_MEMBER

from isogloss_conformance.checks import Check
from isogloss_conformance.client import Request, post
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecast, Forecaster
from isogloss_conformance.results import Outcome
from isogloss_conformance.session import Session

Json = Any


class SmokeStep:
    """One plain call to every operation that can be called plainly."""

    name = "smoke"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._exchange = Exchange(session)
        self._plain = Exchange(session, plain=True)
        self._forecaster = Forecaster(session)

    def checks(self) -> list[Check]:
        """One for each operation that reads, and one for the operation that generates."""
        reading = [found for found in self._session.operations.values() if found.method == "get"]
        found = [self._check(operation) for operation in (*reading, self._session.main)]
        return found if self._session.request_schema.get("additionalProperties") is False else [*found, self._open()]

    def _open(self) -> Check:
        check_id = f"{self._session.dialect}/smoke/unknown_field"
        look = partial(self._generates, {UNKNOWN_MEMBER: 1})
        return Check(
            check_id, self.name, "Fields that the dialect does not know are taken.", look, "extended", "inferred"
        )

    def _check(self, operation: Operation) -> Check:
        check_id = f"{self._session.dialect}/smoke/{operation.name}"
        sentence = f"{operation.method.upper()} {operation.path} answers a plain call as the document declares."
        if operation.id == self._session.main.id:
            return Check(check_id, self.name, sentence, partial(self._generates, {}), "core", "seed")
        return Check(check_id, self.name, sentence, partial(self._reads, operation), "extended", "inferred")

    def _reads(self, operation: Operation) -> Outcome:
        return self._exchange.ask(Request("GET", operation.path, headers={}), operation, Forecast(True))

    def _generates(self, fields: Mapping[str, Json]) -> Outcome:
        body = {**self._session.minimal, "max_tokens": 1, **fields}
        main = self._session.main
        exchange = self._exchange if fields else self._plain
        return exchange.ask(post(main.path, body), main, self._forecaster.of(body))
