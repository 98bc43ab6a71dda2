"""Ends the work on a request from outside: the caller has left, time is up, or the server stops."""

from __future__ import annotations

import asyncio
from types import TracebackType

from starlette.types import Receive

from isogloss.web.errors import ClientGone

_UNWATCHED_S = 0.01
"""A handler that is done sooner than this doesn't get a task that watches its connection."""


class Interruptible:
    """A block that anyone may cancel by `interrupt`, for a reason.

    The work inside sees CancelledError, exactly once; outside of the block the reason shows as the exception. While
    the block runs it stands in `running`.
    """

    def __init__(self, running: set[Interruptible]) -> None:
        self._running = running
        self._reason: Exception | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._clocks: list[asyncio.TimerHandle] = []
        self._loop = asyncio.get_running_loop()

    async def __aenter__(self) -> Interruptible:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._running.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.discard(self)
        for clock in self._clocks:
            clock.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        # Taken out, and deleted below: an error that its own frames hold would keep all that they hold until the
        # garbage collector comes by, such as a body.
        reason, self._reason = self._reason, None
        if reason is None:
            return
        self._task.uncancel()
        try:
            if isinstance(error, asyncio.CancelledError):
                raise reason from None
        finally:
            del reason, error

    def interrupt(self, reason: Exception) -> None:
        """Cancel the block. Only the first reason counts."""
        if self._reason is None:
            self._reason = reason
            self._task.cancel()

    def interrupt_after(self, seconds: float, reason: Exception) -> asyncio.TimerHandle:
        """Cancel the block unless the returned clock is cancelled first."""
        clock = self._loop.call_later(seconds, self.interrupt, reason)
        self._clocks.append(clock)
        return clock

    def watch(self, receive: Receive) -> None:
        """Cancel the block with ClientGone when the caller disconnects. The body must have been received."""
        self._clocks.append(self._loop.call_later(_UNWATCHED_S, self._start_watcher, receive))

    def _start_watcher(self, receive: Receive) -> None:
        self._watcher = self._loop.create_task(self._wait_for_disconnect(receive))

    async def _wait_for_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.interrupt(ClientGone())
