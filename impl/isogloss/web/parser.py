"""An HTTP/1.1 parser that is deaf to offers of another protocol."""

from __future__ import annotations

from array import array
from typing import Protocol

import httptools


class ParsedRequest(Protocol):
    """What the callbacks have gathered of a request's header."""

    url: bytes
    headers: list[tuple[bytes, bytes]]
    """Names in lower case."""


class PlainParser:
    """httptools' parser, which reads a request with `Connection: Upgrade` as if the offer were not there.

    RFC 9110 (7.8) lets a server ignore the offer, but httptools ends such a request behind its header, takes the
    body for the other protocol's, and has no way to be told otherwise. So the header is parsed once more without the
    offer; until then `offered` is true, and the callbacks of the first time are to be ignored.
    """

    def __init__(self, request: ParsedRequest) -> None:
        self._request = request
        self._parser = self._new()

    @property
    def offered(self) -> bool:
        """Whether the header that is complete offers another protocol."""
        return self._parser.should_upgrade() and self.get_method() != b"CONNECT"

    def feed_data(self, data: bytes | bytearray | memoryview | array[int]) -> None:
        """Parse the next bytes. Raises httptools.HttpParserError."""
        rest = memoryview(data)
        while rest:
            try:
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as stop:
                rest = rest[stop.args[0] :]
                header = self._header_without_offer()
                self._parser = self._new()  # the old one may be past its last request
                self._parser.feed_data(header)
            else:
                return

    def get_method(self) -> bytes:
        """Of the request whose header is complete."""
        return self._parser.get_method()

    def get_http_version(self) -> str:
        """Of the request whose header is complete, like 1.1."""
        return self._parser.get_http_version()

    def should_keep_alive(self) -> bool:
        """Whether the connection may serve another request."""
        return self._parser.should_keep_alive()

    def should_upgrade(self) -> bool:
        """Never, as far as the protocol is concerned."""
        return False

    def _new(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self._request)
        # Requests that were pipelined behind `Connection: close` must not turn the first one's answer into an error.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _header_without_offer(self) -> bytes:
        version = self.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.get_method(), self._request.url, version)]
        lines += [b"%s: %s" % header for header in self._request.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])
