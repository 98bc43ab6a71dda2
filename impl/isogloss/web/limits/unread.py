"""Bodies that an operation has no use for."""

from __future__ import annotations

from isogloss_spec import Fault
from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.interrupt import Interruptible
from isogloss.web.limits.body import BodyReader
from isogloss.web.state import state_of


class UnreadBody:
    """Holds the body of an operation without one to its size, too: drops it, and only then hands on.

    Raises `body_too_large` and `timeout` (after `timeout_s` seconds), or ClientGone.
    """

    def __init__(self, app: ASGIApp, limit: int, timeout_s: float, running: set[Interruptible]) -> None:
        self._app = app
        self._reader = BodyReader(limit)
        self._timeout_s = timeout_s
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on once the body is over."""
        async with Interruptible(self._running) as block:
            block.interrupt_after(self._timeout_s, Fault("timeout"))
            await self._reader.drop(state_of(scope).headers, receive)
        await self._app(scope, receive, send)
