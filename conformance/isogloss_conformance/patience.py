"""Requests that take what a server has: its patience with a slow caller, its room for many at once."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

from isogloss_conformance.client import Answer, Client, Request, post
from isogloss_conformance.discover import SCRIPT
from isogloss_conformance.session import Session

HELD_S = 3.0
"""Seconds that a held call of a scripted engine lasts."""
HELD_TOKENS = 64


def open_socket(client: Client, timeout: float) -> socket.socket:
    """A bare connection to the server under test, with TLS if its address says so."""
    parts = urlsplit(client.base_url)
    secure = parts.scheme == "https"
    host = parts.hostname or "localhost"
    plain = socket.create_connection((host, parts.port or (443 if secure else 80)), timeout=timeout)
    if not secure:
        return plain
    return ssl.create_default_context(cafile=client.ca).wrap_socket(plain, server_hostname=host)


def head(client: Client, request: Request, length: int | None) -> bytes:
    """The header of a request, as it goes over the wire; without a length the body must be chunked."""
    parts = urlsplit(client.base_url)
    framing = {"Content-Length": str(length)} if length is not None else {"Transfer-Encoding": "chunked"}
    headers = {"Host": parts.netloc, **client.headers(), **request.headers, **framing}
    lines = [f"{request.method} {parts.path}{request.path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def read_answer(connection: socket.socket, started: float) -> Answer:
    """What comes back over a bare connection."""
    try:
        response = HTTPResponse(connection)
        response.begin()
        content = response.read()
    except (OSError, HTTPException) as error:
        waited = time.perf_counter() - started
        return Answer(0, {}, b"", waited, f"no answer: {type(error).__name__}: {error}")
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, content, time.perf_counter() - started)


def slow_request(client: Client, request: Request, patience: float) -> Answer:
    """Send all of a request but its last byte, and wait for the server to give up."""
    started = time.perf_counter()
    with open_socket(client, patience) as connection:
        connection.sendall(head(client, request, len(request.body)) + request.body[:-1])
        return read_answer(connection, started)


class Flood:
    """Many slow calls at once; made once, whoever asks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._answers: list[Answer] | None = None
        body = {**session.minimal, "max_tokens": HELD_TOKENS}
        script = {"prefer_tokens": ["a"], "delay_ms_each": 1000 * HELD_S / HELD_TOKENS}
        header = base64.b64encode(json.dumps(script).encode()).decode()
        self._request = post(session.main.path, body, {SCRIPT: header} if session.facts.scripted else {})

    def answers(self) -> tuple[Request, list[Answer]]:
        """The call and all its answers."""
        with self._lock:
            if self._answers is None:
                self._answers = self._sent(self._session.options.flood)
        return self._request, self._answers

    def _sent(self, calls: int) -> list[Answer]:
        with ThreadPoolExecutor(calls) as pool:
            return list(pool.map(self._session.client.send, [self._request] * calls))
