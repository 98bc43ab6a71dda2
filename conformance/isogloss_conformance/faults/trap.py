"""An address on this machine that nobody may visit: it serves a picture to whoever does, and counts them."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from isogloss_conformance.pictures import picture

_PNG = base64.b64decode(picture().partition(",")[2])


@dataclass(slots=True)
class Trap:
    """Where it is, and how many came."""

    port: int = 0
    visits: int = 0


class _Visit(BaseHTTPRequestHandler):
    laid: Trap

    def setup(self) -> None:
        """Count, whatever is asked."""
        self.laid.visits += 1
        super().setup()

    def do_GET(self) -> None:
        """A picture."""
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        self.wfile.write(_PNG)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def trap() -> Iterator[Trap]:
    """Listens on loopback as long as the block lasts."""
    laid = Trap()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Visit", (_Visit,), {"laid": laid}))
    laid.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield laid
    finally:
        server.shutdown()
        server.server_close()
