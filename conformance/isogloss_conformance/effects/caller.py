"""Calls of the main operation for those who care about what was generated, not about the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isogloss_conformance.client import Answer, Request, post
from isogloss_conformance.discover import script_header
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.pictures import samples
from isogloss_conformance.responses import ResponseValidator
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session
from isogloss_conformance.streams import laws

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
    def message(self) -> Mapping[str, Json]:
        """The message of choice 0; empty if the dialect has none."""
        found: Mapping[str, Json] = (self.choices[0].get("message") if self.choices else None) or {}
        return found

    @property
    def calls(self) -> list[Mapping[str, Json]]:
        """The calls of choice 0."""
        return list(self.message.get("tool_calls") or ())

    @property
    def thought(self) -> str:
        """What the model thought before choice 0, if the server tells."""
        return self.message.get("reasoning_content") or ""

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt, as the server counts them; 0 if it does not say."""
        return (self.body.get("usage") or {}).get("prompt_tokens") or 0

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
        self.media = samples(session.document)
        """A small medium for each member of a content part that holds one."""
        self.fields = frozenset(session.request_schema["properties"]) | self.media.keys()
        """What a request may say, members of content parts that hold media included."""
        self.defaults: Mapping[str, Json] = {
            name: schema["x-default"]
            for name, schema in session.request_schema["properties"].items()
            if "x-default" in schema
        }
        """What a field that is left out counts as, where the document says so."""
        self.scripted = session.facts.scripted
        """Whether scripts are followed."""
        self.model = session.facts.model
        self._responses = ResponseValidator(session.document)
        self._last: Answer | None = None

    def __call__(self, *, script: Json = None, **fields: Json) -> Reply:
        """One greedy call unless the fields say otherwise, by a script if that is followed. Raises NoReply.

        A field that is given as `...` is left out.
        """
        body = self._body(fields)
        request = post(self._session.main.path, body, script_header(script if self.scripted else None))
        answer = self._last = self._session.client.send(request)
        if answer.status == 200 and isinstance(answer.json, dict):
            return Reply(answer.json, self._session.client.curl(request))
        raise NoReply(self._refused(request, body))

    def allows(self, **fields: Json) -> bool:
        """Whether the document allows the same call."""
        return self._forecaster.of(self._body(fields)).success

    def _body(self, fields: Mapping[str, Json]) -> dict[str, Json]:
        asked = {**self._session.minimal, "temperature": 0, **fields}
        return {name: value for name, value in asked.items() if value is not ...}

    def misshapen(self) -> str | None:
        """How the last completion departs from what the document declares, in words; None if it does not."""
        if self._last is None:
            return None
        main = self._session.main
        found = self._responses.departures(main.method, main.path, self._last)
        return found[0].text if found else None

    def _refused(self, request: Request, body: Json) -> Outcome:
        """A refusal for want of a feature is proper, any other is not; no answer says nothing."""
        forecast = self._forecaster.of(body)
        outcome = self._exchange.ask(request, self._session.main, forecast)
        if outcome.status in (Status.UNSUPPORTED, Status.ERROR):
            return outcome
        return Outcome(Status.FAIL, "200", outcome.got, outcome.curl)
