"""uvicorn's HTTP/1.1 protocol with the clocks and bounds that it lacks."""

from __future__ import annotations

from asyncio import AbstractEventLoop, BaseTransport, TimerHandle
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from isogloss.web.parser import PlainParser


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds on one connection; times in seconds."""

    header_timeout_s: float = 20.0
    """From the connection's start to the end of the request's header; a later request gets the idle time on top."""
    header_bytes: int = 64 * 1024
    """Largest request line and header together; more is 431."""
    write_timeout_s: float = 60.0
    """How long a full write buffer (64 KiB) may take to drain to a quarter; then the connection is cut."""


class ServerConfig(uvicorn.Config):
    """uvicorn's settings and ours."""

    def __init__(self, app: ASGIApp, connection: ConnectionLimits, **options: Any) -> None:
        super().__init__(app, http=BoundedProtocol, **options)
        self.connection = connection


class RefusedHeaderError(Exception):
    """Ends the parser's work on a request: the parser turns it into its own error, which becomes the answer."""


class BoundedProtocol(HttpToolsProtocol):
    """Cuts connections that don't get their header done, and readers that don't read.

    What is no request yet is answered in plain text, in no dialect. A cut reader shows to the app as a disconnect,
    which cancels the handler.
    """

    parser: PlainParser  # type: ignore[assignment]  # uvicorn uses what is here of its own

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = PlainParser(self)
        self.access_log = False  # the app writes its own, and uvicorn decides by the root logger's handlers
        self._limits = cast(ServerConfig, self.config).connection
        self._header_clock = _Clock(self.loop)
        self._write_clock = _Clock(self.loop)
        self._running: RequestResponseCycle | None = None
        self._in_header = True
        self._header_size = 0
        """Bytes received since the header began."""

    def connection_made(self, transport: BaseTransport) -> None:
        """The header's time starts here."""
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn narrows the type
        self._header_clock.start(self._limits.header_timeout_s, self._header_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock and no request outlives the connection."""
        self._header_clock.stop()
        self._write_clock.stop()
        self._disconnect_running()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bound a header that is still incomplete."""
        if self._in_header:
            self._header_size += len(data)
        super().data_received(data)
        if self._in_header and self._header_size > self._limits.header_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Bound a header that came in few pieces, with other bytes behind it; refuse what only proxies serve."""
        if self.parser.offered:
            return
        too_large = self._header_size > self._limits.header_bytes < self._exact_header_size()
        if too_large or self.parser.get_method() == b"CONNECT":
            raise RefusedHeaderError
        super().on_headers_complete()
        self._in_header = False
        self._header_clock.stop()

    def on_message_complete(self) -> None:
        """From here on, bytes belong to the next request's header."""
        if self.parser.offered:
            return
        super().on_message_complete()
        self._in_header = True
        self._header_size = 0

    def on_response_complete(self) -> None:
        """The next header's time starts here, unless it has come already."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._header_clock.start(self.timeout_keep_alive + self._limits.header_timeout_s, self._header_late)

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser refused."""
        too_large = self._header_size > self._limits.header_bytes
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if too_large else HTTPStatus.BAD_REQUEST)

    def pause_writing(self) -> None:
        """The reader is behind."""
        super().pause_writing()
        self._write_clock.start(self._limits.write_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The reader has caught up."""
        self._write_clock.stop()
        super().resume_writing()

    def _exact_header_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _header_late(self) -> None:
        if self._in_header and self._header_size:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus) -> None:
        if self.transport.is_closing():
            return
        if self._next_answer_is_free():  # else the bytes would land in another answer
            text = f"{status.phrase}\n"
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
                f"content-length: {len(text)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write((head + text).encode())
        self._disconnect_running()  # the app must not answer, too, while this is being written
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect_running(self) -> None:
        # uvicorn tells only the request that came last, which may still wait in the pipeline.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def _next_answer_is_free(self) -> bool:
        """Whether all earlier requests are answered, and the one whose header or body is coming not at all."""
        if self._in_header:
            return self.cycle is None or self.cycle.response_complete
        return not (self.pipeline or self.cycle.response_started)


class _Clock:
    """A timer that can be started anew and stopped."""

    __slots__ = ("_handle", "_loop")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: TimerHandle | None = None

    def start(self, seconds: float, action: Callable[[], None]) -> None:
        self.stop()
        self._handle = self._loop.call_later(seconds, action)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
