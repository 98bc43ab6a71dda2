"""uvicorn's HTTP/1.1 protocol with the clocks and bounds that it lacks."""

from __future__ import annotations

from asyncio import BaseTransport, TimerHandle
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds on one connection; times in seconds."""

    header_timeout_s: float = 20.0
    """From the connection's start to the end of the request's header; later requests get the idle time on top."""
    header_bytes: int = 64 * 1024
    """Largest request line and header together; more is 431."""
    write_timeout_s: float = 60.0
    """How long a full write buffer (64 KiB) may take to drain to a quarter; then the connection is cut."""


class ServerConfig(uvicorn.Config):
    """uvicorn's settings and ours."""

    def __init__(self, *args: Any, connection: ConnectionLimits, **kwargs: Any) -> None:
        super().__init__(*args, http=BoundedProtocol, **kwargs)
        self.connection = connection


class BoundedProtocol(HttpToolsProtocol):
    """Cuts connections that don't get their header done, and readers that don't read.

    A cut reader shows to the app as a disconnect, which cancels the handler.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = cast(ServerConfig, self.config).connection
        self._header_clock: TimerHandle | None = None
        self._write_clock: TimerHandle | None = None
        self._header_size = 0
        self._in_header = True

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn narrows the type
        self._header_clock = self.loop.call_later(self._limits.header_timeout_s, self._header_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_clock = _stop(self._header_clock)
        self._write_clock = _stop(self._write_clock)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_header:
            self._header_size += len(data)
        super().data_received(data)
        if self._in_header and self._header_size > self._limits.header_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._in_header = False
        self._header_clock = _stop(self._header_clock)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_header = True
        self._header_size = 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self._in_header:
            self._header_clock = _stop(self._header_clock)
            late = self.timeout_keep_alive + self._limits.header_timeout_s
            self._header_clock = self.loop.call_later(late, self._header_late)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_clock = self.loop.call_later(self._limits.write_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._write_clock = _stop(self._write_clock)
        super().resume_writing()

    def _header_late(self) -> None:
        self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer what is no request yet, in no dialect, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode())
        self.transport.close()


def _stop(clock: TimerHandle | None) -> None:
    if clock is not None:
        clock.cancel()
