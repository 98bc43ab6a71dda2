"""Stopping without hurting anyone."""

from __future__ import annotations

from isogloss_spec import Fault
from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.interrupt import Interruptible
from isogloss.web.state import state_of


class Drain:
    """Whether the server is stopping, and what still runs."""

    def __init__(self) -> None:
        self.active = False
        self.running: set[Interruptible] = set()

    def begin(self) -> None:
        """Take nothing new."""
        self.active = True

    def expire(self) -> None:
        """End what still runs; streams get an error event."""
        for block in list(self.running):
            block.interrupt(Fault("overloaded"))


class DrainGate:
    """While the server stops, every operation that can answer `overloaded` does so: readiness, and new work."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on unless the server stops."""
        if self._drain.active and "overloaded" in state_of(scope).route.operation.faults:
            raise Fault("overloaded")
        await self._app(scope, receive, send)
