"""The layer that turns what the inner ones raise into answers."""

from __future__ import annotations

from isogloss_spec import Fault
from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.answers import send_error
from isogloss.web.errors import ClientGone
from isogloss.web.log import log_failure, log_refusal
from isogloss.web.routing import Route, RouteTable
from isogloss.web.state import RequestState, state_of

_CLIENT_CLOSED_REQUEST = 499
"""Never sent; the log's word for an answer that nobody waited for."""


def as_fault(state: RequestState, error: Exception) -> Fault:
    """The fault to answer with. Logs what the caller isn't told."""
    if isinstance(error, Fault):
        log_refusal(state, error)
        return error
    log_failure(state, error)
    return Fault("engine_failure")


class Failures:
    """Every failure is answered, in the way of the document that the path belongs to."""

    def __init__(self, app: ASGIApp, table: RouteTable) -> None:
        self._app = app
        self._table = table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, and answer what comes back as an exception."""
        state = state_of(scope)
        try:
            await self._app(scope, receive, send)
        except ClientGone:
            state.status = _CLIENT_CLOSED_REQUEST
        except Exception as error:  # nothing may leave the server without an answer in the dialect's form
            await self._answer(send, state, error)

    async def _answer(self, send: Send, state: RequestState, error: Exception) -> None:
        # A function of its own: a local variable of `__call__` would tie the error, and by its traceback the body of
        # the request, into a cycle that only the garbage collector frees.
        fault = as_fault(state, error)
        if state.status == 0:
            api = state.target.mount.api if isinstance(state.target, Route) else self._table.api_of(state.path)
            await send_error(send, state, api.errors.render(fault, state.request_id, state.own_id))
