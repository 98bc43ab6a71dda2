"""One request and its answer, held against what the document allows."""

from __future__ import annotations

from functools import cached_property

from isogloss_spec.document import Operation
from isogloss_spec.faults import Fault

from isogloss_conformance.client import Answer, Request, post
from isogloss_conformance.forecast import Forecast, departure, described
from isogloss_conformance.responses import ResponseValidator
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session


class Exchange:
    """Sends requests of one session and judges what comes back.

    What is wrong with the answer to a plain call of the main operation, such as a member that all answers lack, is
    said once, by whoever asks for it (`plain`); otherwise no check about anything else could hold.
    """

    def __init__(self, session: Session, *, plain: bool = False) -> None:
        self._session = session
        self._plain = plain
        self._client = session.client
        self._responses = ResponseValidator(session.document)

    def ask(self, request: Request, operation: Operation, forecast: Forecast, *, with_key: bool = True) -> Outcome:
        """Send one request to an operation and compare."""
        answer = self._client.send(request, with_key=with_key)
        return self.judged(request, answer, operation, forecast, with_key=with_key)

    def refused(self, request: Request, operation: Operation, fault: Fault, *, with_key: bool = True) -> Outcome:
        """Send one request that must be answered with a fault."""
        return self.ask(request, operation, only(fault), with_key=with_key)

    def judged(
        self, request: Request, answer: Answer, operation: Operation, forecast: Forecast, *, with_key: bool = True
    ) -> Outcome:
        """Compare an answer that is there already."""
        curl = self._client.curl(request, with_key=with_key)
        expected = described(self._session, forecast)
        if answer.trouble is not None:
            return Outcome(Status.ERROR, expected, answer.trouble, curl)
        wrong = departure(self._session, forecast, answer)
        if wrong is None and operation.node:  # a path that leads nowhere declares nothing
            wrong = self._misshapen(operation, answer)
        if wrong is not None:
            return Outcome(Status.FAIL, expected, wrong, curl)
        status = Status.UNSUPPORTED if forecast.lacks_feature else Status.PASS
        return Outcome(status, expected, answer.described(), curl)

    def _misshapen(self, operation: Operation, answer: Answer) -> str | None:
        """How an answer departs from the schemas of the document."""
        wrong = self._responses.departures(operation.method, operation.path, answer)
        if wrong and answer.status == 200 and operation.id == self._session.main.id and not self._plain:
            wrong = [found for found in wrong if found.kind not in self._usual]
        return wrong[0].text if wrong else None

    @cached_property
    def _usual(self) -> set[tuple[str, ...]]:
        """Kinds of what is wrong with the answer to a plain call."""
        main = self._session.main
        answer = self._client.send(post(main.path, {**self._session.minimal, "max_tokens": 1}))
        if answer.status != 200:
            return set()
        return {found.kind for found in self._responses.departures(main.method, main.path, answer)}


def only(fault: Fault) -> Forecast:
    """The forecast of a request that one fault must answer."""
    return Forecast(False, (fault,))
