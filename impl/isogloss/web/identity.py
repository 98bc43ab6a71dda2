"""The outermost layer: every request has an id, a state and a line in the log."""

from __future__ import annotations

import os
import re
from time import perf_counter

from isogloss_spec import Fault
from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.log import log_request
from isogloss.web.routing import Route, RouteTable
from isogloss.web.state import KEY, RequestState

_WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,128}")


class Identity:
    """Takes the caller's `X-Request-Id` if it is well-formed, else makes one, and looks up where the request leads."""

    def __init__(self, app: ASGIApp, table: RouteTable) -> None:
        self._app = app
        self._table = table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on with an id, then log."""
        assert scope["type"] == "http", "the server is started without lifespan and websockets"
        begun = perf_counter()
        headers = dict(scope["headers"])
        own_id = os.urandom(16).hex()
        state = RequestState(_request_id(headers, own_id), headers, self._target(scope), own_id)
        scope[KEY] = state
        try:
            await self._app(scope, receive, send)
        finally:
            log_request(state, scope["method"], scope["path"], perf_counter() - begun)

    def _target(self, scope: Scope) -> Route | Fault:
        try:
            return self._table.find(scope["path"], scope["method"])
        except Fault as fault:
            return fault


def _request_id(headers: dict[bytes, bytes], own_id: str) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _WELL_FORMED.fullmatch(given) else own_id
