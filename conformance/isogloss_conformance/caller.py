"""Calls of the main operation for those who care about what was generated, not about the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isogloss_conformance import laws
from isogloss_conformance.client import Request, post
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session

Json = Any


class NoReply(Exception):
    """A call brought no completion; `outcome` says what it brought."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.got)
        self.outcome = outcome


@dataclass(frozen=True)
class Reply:
    """One completion."""

    body: Mapping[str, Json]
    curl: str

    @property
    def choices(self) -> Sequence[Mapping[str, Json]]:
        """All choices, in the order in which they came."""
        found: Sequence[Mapping[str, Json]] = self.body.get("choices") or ()
        return found

    @property
    def text(self) -> str:
        """The text of choice 0."""
        return laws.text([dict(self.body)])

    @property
    def texts(self) -> list[str]:
        """The text of each choice."""
        return [laws.text([dict(self.body)], index) for index in range(len(self.choices))]

    @property
    def finish_reason(self) -> Json:
        """Why choice 0 ended."""
        return self.choices[0].get("finish_reason") if self.choices else None

    @property
    def completion_tokens(self) -> Json:
        """Tokens of all choices, as the server counts them."""
        return (self.body.get("usage") or {}).get("completion_tokens")


class Caller:
    """Makes calls with the minimal body and some fields more."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)
        self.fields = frozenset(session.request_schema["properties"])

    def __call__(self, **fields: Json) -> Reply:
        """One greedy call unless the fields say otherwise. Raises NoReply."""
        body = {**self._session.minimal, "temperature": 0, **fields}
        request = post(self._session.main.path, body)
        answer = self._session.client.send(request)
        if answer.status == 200 and isinstance(answer.json, dict):
            return Reply(answer.json, self._session.client.curl(request))
        raise NoReply(self._refused(request, body))

    def _refused(self, request: Request, body: Json) -> Outcome:
        """A refusal for want of a feature is proper; any other is not."""
        forecast = self._forecaster.of(body)
        outcome = self._exchange.ask(request, self._session.main, forecast)
        if forecast.lacks_feature and outcome.status is Status.UNSUPPORTED:
            return outcome
        return Outcome(Status.FAIL, "200", outcome.got, outcome.curl)
