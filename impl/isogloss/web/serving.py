"""Runs the app under uvicorn: listens, announces itself, drains on SIGTERM."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from isogloss.web.limits.drain import Drain
from isogloss.web.protocol import ConnectionLimits, ServerConfig

_LAST_WORDS_S = 5
"""Seconds for streams that were ended by the drain to write their error event."""


@dataclass(frozen=True, slots=True)
class Serving:
    """How to serve; times in seconds."""

    connection: ConnectionLimits = field(default_factory=ConnectionLimits)
    keep_alive_s: int = 5
    """How long an idle connection stays open."""
    drain_timeout_s: float = 30.0
    """How long running requests may take after SIGTERM."""


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 picks one. Raises OSError, so a port that is taken shows before anything is loaded."""
    choices = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, proto, _, address = choices[0]
    sock = socket.socket(family, kind, proto)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


class Server(uvicorn.Server):
    """On the first signal takes nothing new and waits for what runs; on the second waits no longer."""

    def __init__(self, app: ASGIApp, serving: Serving, drain: Drain, started: Callable[[], None]) -> None:
        config = ServerConfig(
            app,
            serving.connection,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=serving.keep_alive_s,
            timeout_graceful_shutdown=_LAST_WORDS_S,
        )
        super().__init__(config)
        self._drain = drain
        self._drain_timeout_s = serving.drain_timeout_s
        self._deadline = 0.0
        self._announce = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept, then say so."""
        await super().startup(sockets)
        self._announce()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain. Other than uvicorn's own, the signal isn't raised again afterwards: the exit status is 0."""
        again = self._drain.active
        self._drain.begin()
        self._deadline = monotonic() + (0.0 if again else self._drain_timeout_s)

    def stop(self) -> None:
        """What a signal does, for callers that run the server in a thread."""
        self.handle_exit(signal.SIGTERM, None)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end the main loop."""
        if await super().on_tick(counter):
            return True
        if not self._drain.active or (self.server_state.tasks and monotonic() < self._deadline):
            return False
        self._drain.expire()
        return True
