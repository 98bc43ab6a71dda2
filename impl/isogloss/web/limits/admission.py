"""How many requests may be open at once."""

from __future__ import annotations

from collections import Counter

from isogloss_spec import Fault
from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.state import state_of


class Admission:
    """Bounds the open requests that bring a body, in all and per key, before anything of the body is read.

    Raises `quota_exceeded` for a caller that has too many of its own, `overloaded` for a server that is full.
    """

    def __init__(self, app: ASGIApp, most: int, most_per_key: int) -> None:
        self._app = app
        self._most = most
        self._most_per_key = most_per_key
        self._open = 0
        self._open_per_key: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on if there is room."""
        state = state_of(scope)
        if not state.route.operation.has_body:
            await self._app(scope, receive, send)
            return
        self._enter(state.key_name)
        try:
            await self._app(scope, receive, send)
        finally:
            self._leave(state.key_name)

    def _enter(self, key: str | None) -> None:
        if key is not None and self._open_per_key[key] >= self._most_per_key:
            raise Fault("quota_exceeded")
        if self._open >= self._most:
            raise Fault("overloaded")
        self._open += 1
        if key is not None:
            self._open_per_key[key] += 1

    def _leave(self, key: str | None) -> None:
        self._open -= 1
        if key is not None:
            self._open_per_key[key] -= 1
