"""A bound on the whole of an exchange, whatever comes how slowly: its connection is cut when the time is up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Deadline:
    """Knows the connection of one exchange, and whether it was cut."""

    def __init__(self, connection: socket.socket | None = None) -> None:
        self.passed = False
        self._connection = connection

    def trace(self, name: str, details: Any) -> None:
        """Take hold of the connection that httpx opens: its extension `trace`. With TLS the later one counts."""
        if name.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._connection = details["return_value"].get_extra_info("socket")

    def cut(self) -> None:
        """Whoever reads from the connection, or writes to it, goes on with an error."""
        self.passed = True
        if self._connection is not None:
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


@contextmanager
def limited(deadline: Deadline, seconds: float) -> Iterator[Deadline]:
    """Cut the connection if the block lasts longer."""
    timer = threading.Timer(seconds, deadline.cut)
    timer.daemon = True
    timer.start()
    try:
        yield deadline
    finally:
        timer.cancel()
