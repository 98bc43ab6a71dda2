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
        path = _path(scope)
        state = RequestState(_request_id(headers, own_id), path, headers, self._target(path, scope["method"]), own_id)
        scope[KEY] = state
        try:
            await self._app(scope, receive, send)
        finally:
            log_request(state, scope["method"], perf_counter() - begun)

    def _target(self, path: str, method: str) -> Route | Fault:
        try:
            return self._table.find(path, method)
        except Fault as fault:
            return fault


def _path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")  # ASGI leaves it to the server whether there is one
    return scope["path"] if raw is None else raw.decode("latin-1")


def _request_id(headers: dict[bytes, bytes], own_id: str) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _WELL_FORMED.fullmatch(given) else own_id
