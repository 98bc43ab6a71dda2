"""A proxy for one mutant: forwards to the right server and lets the mutant meddle."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from isogloss_conformance.mutants.wire import Got, Memory, Mutant, Sent

_HOP = frozenset({"connection", "transfer-encoding", "content-length", "host", "date", "server"})
"""Headers of one connection, which a proxy makes anew."""
_TIMEOUT_S = 60
_SLOW_S = 0.2
"""Seconds after which a body counts as slow: more than a pause between its pieces."""


@contextmanager
def proxied(mutant: Mutant, upstream: str, key: str) -> Iterator[str]:
    """The base URL of the mutant before a server on this machine that takes a key."""
    handler = type("Handler", (_Handler,), {"mutant": mutant, "upstream": urlsplit(upstream).netloc, "key": key})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mutant: Mutant
    upstream: str
    key: str

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def _forward(self) -> None:
        try:
            read = self._read()
        except OSError:  # the caller left
            self.close_connection = True
            return
        sent = self.mutant.request(read)
        if isinstance(sent, Got):
            self._reply(sent)
            return
        connection = http.client.HTTPConnection(self.upstream, timeout=_TIMEOUT_S)
        try:
            kept = {name: value for name, value in sent.headers.items() if name not in _HOP}
            connection.request(sent.method, sent.path, sent.body or None, kept)
            response = connection.getresponse()
            if response.headers.get_content_type() == "text/event-stream":
                self._stream(sent, response)
            else:
                headers = {name.lower(): value for name, value in response.getheaders()}
                self._reply(self.mutant.answer(sent, Got(response.status, headers, response.read())))
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = _forward  # noqa: N815 (the names of the base class)

    def _read(self) -> Sent:
        """The whole request. Raises OSError if it breaks off."""
        chunked = self.headers.get("Transfer-Encoding", "").lower() == "chunked"
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self._place(headers):
            body = self._chunks() if chunked else self._whole(int(self.headers.get("Content-Length", 0)))
        return Sent(self.command, self.path, headers, body, self.key, chunked)

    @contextmanager
    def _place(self, headers: Mapping[str, str]) -> Iterator[None]:
        """While a caller is slow with its body, hold a place before the right server in its stead."""
        connection = http.client.HTTPConnection(self.upstream, timeout=_TIMEOUT_S)

        def hold() -> None:
            kept = {name: value for name, value in headers.items() if name not in _HOP}
            connection.request(self.command, self.path, None, {**kept, "content-length": "2"})

        timer = threading.Timer(_SLOW_S, hold)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            connection.close()

    def _whole(self, length: int) -> bytes:
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionAbortedError
        return body

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _reply(self, got: Got) -> None:
        self.send_response_only(got.status)
        for name, value in got.headers.items():
            if name not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(got.body)))
        with suppress(OSError):  # nobody listens any more
            self.end_headers()
            self.wfile.write(got.body)

    def _stream(self, sent: Sent, response: http.client.HTTPResponse) -> None:
        self.send_response_only(response.status)
        self.send_header("Content-Type", self.mutant.stream_type)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        memory, out, listening = Memory(sent), [], True
        for event in _events(response):
            out += [made + self.mutant.separator for made in self.mutant.event(memory, event)]
            memory.events += 1
            if listening and not self.mutant.buffers:
                listening = self._write(out)
            if not listening and not self.mutant.holds:
                return
        if listening:
            self._write(out)

    def _write(self, out: list[str]) -> bool:
        """Send what there is; whether somebody listens."""
        try:
            self.wfile.write("".join(out).encode())
            self.wfile.flush()
        except OSError:
            return False
        out.clear()
        return True


def _events(response: http.client.HTTPResponse) -> Iterator[str]:
    """Events as they come, without their blank lines."""
    lines: list[str] = []
    while line := response.readline():
        text = line.decode()
        if text.strip():
            lines.append(text)
        elif lines:
            yield "".join(lines).rstrip("\r\n")
            lines = []
    if lines:
        yield "".join(lines).rstrip("\r\n")
