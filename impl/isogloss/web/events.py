"""Answers that come in events (`text/event-stream`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any

import orjson
from isogloss_api.runtime import Framing
from starlette.types import Send

from isogloss.web.answers import encoded_headers
from isogloss.web.errors import RenderedError
from isogloss.web.state import RequestState

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
_COMMENT = b": keepalive\n\n"


class EventStream:
    """Writes one stream of events.

    The answer starts with the first event, so that a fault before it can still be an answer of its own, or with a
    comment. A comment comes every `framing.keepalive` seconds, also while events do.
    """

    def __init__(self, send: Send, state: RequestState, framing: Framing) -> None:
        self._send = send
        self._state = state
        self._framing = framing
        self._headers: Mapping[str, str] = {}
        self._lock = asyncio.Lock()
        self.started = False

    async def run(self, events: AsyncIterator[Any], headers: Mapping[str, str]) -> None:
        """Write all events and the terminator. Closes `events` whatever happens."""
        self._headers = headers
        beat = asyncio.create_task(self._keep_alive()) if self._framing.keepalive else None
        try:
            async with _closing(events):
                async for event in events:
                    await self._write(b"data: " + orjson.dumps(event) + b"\n\n")
        finally:
            if beat is not None:
                beat.cancel()
        await self._finish(b"")

    async def fail(self, error: RenderedError) -> None:
        """End a started stream with an event that holds the error."""
        self._state.fault = error.fault
        await self._finish(b"data: " + error.body + b"\n\n")

    async def _finish(self, body: bytes) -> None:
        if self._framing.terminator is not None:
            body += f"data: {self._framing.terminator}\n\n".encode()
        await self._write(body, more=False)

    async def _write(self, body: bytes, *, more: bool = True) -> None:
        async with self._lock:  # a comment and an event may both be due while the reader is slow
            if not self.started:
                await self._start()
            await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def _start(self) -> None:
        self.started = True
        self._state.status = 200
        request_id = (b"x-request-id", self._state.request_id.encode())
        headers = [*_HEADERS, request_id, *encoded_headers(self._headers)]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _keep_alive(self) -> None:
        interval = self._framing.keepalive or 0.0
        while True:
            await asyncio.sleep(interval)
            await self._write(_COMMENT)


def _closing(events: AsyncIterator[Any]) -> AbstractAsyncContextManager[Any]:
    return aclosing(events) if hasattr(events, "aclose") else nullcontext()
