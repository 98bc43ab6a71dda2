"""One request and its answer, held against what the document allows."""

from __future__ import annotations

from isogloss_spec.document import Operation
from isogloss_spec.faults import Fault

from isogloss_conformance.client import Answer, Request
from isogloss_conformance.forecast import Forecast, departure, described
from isogloss_conformance.responses import ResponseValidator
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session


class Exchange:
    """Sends requests of one session and judges what comes back."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._client = session.client
        self._responses = ResponseValidator(session.document)

    def ask(self, request: Request, operation: Operation, forecast: Forecast, *, with_key: bool = True) -> Outcome:
        """Send one request to an operation and compare."""
        return self.judged(request, self._client.send(request, with_key=with_key), operation, forecast)

    def refused(self, request: Request, operation: Operation, fault: Fault, *, with_key: bool = True) -> Outcome:
        """Send one request that must be answered with a fault."""
        return self.ask(request, operation, only(fault), with_key=with_key)

    def judged(self, request: Request, answer: Answer, operation: Operation, forecast: Forecast) -> Outcome:
        """Compare an answer that is there already."""
        curl = self._client.curl(request)
        expected = described(self._session, forecast)
        if answer.trouble is not None:
            return Outcome(Status.ERROR, expected, answer.trouble, curl)
        wrong = departure(self._session, forecast, answer)
        if wrong is None and operation.node:  # a path that leads nowhere declares nothing
            wrong = self._responses.fault(operation.method, operation.path, answer)
        if wrong is not None:
            return Outcome(Status.FAIL, expected, wrong, curl)
        status = Status.UNSUPPORTED if forecast.lacks_feature else Status.PASS
        return Outcome(status, expected, answer.described(), curl)


def only(fault: Fault) -> Forecast:
    """The forecast of a request that one fault must answer."""
    return Forecast(False, (fault,))
