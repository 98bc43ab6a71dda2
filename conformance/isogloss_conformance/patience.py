"""Requests that take what a server has: its patience with a slow caller, its room for many at once."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

from isogloss_conformance.client import LARGEST_ANSWER, Answer, Client, Request, post
from isogloss_conformance.deadline import Deadline, limited
from isogloss_conformance.discover import script_header
from isogloss_conformance.session import Session

HELD_S = 3.0
"""Seconds that a held call of a scripted engine lasts."""
HELD_TOKENS = 64
NOTICED_WITHIN_S = 2.0
"""Seconds for a server to notice that callers have begun to send, or have left."""


def open_socket(client: Client, timeout: float) -> socket.socket:
    """A bare connection to the server under test, with TLS if its address says so."""
    parts = urlsplit(client.base_url)
    secure = parts.scheme == "https"
    host = parts.hostname or "localhost"
    plain = socket.create_connection((host, parts.port or (443 if secure else 80)), timeout=timeout)
    if not secure:
        return plain
    return client.tls.wrap_socket(plain, server_hostname=host)


def head(client: Client, request: Request, length: int | None) -> bytes:
    """The header of a request, as it goes over the wire; without a length the body must be chunked."""
    framing = {"Content-Length": str(length)} if length is not None else {"Transfer-Encoding": "chunked"}
    target = urlsplit(client.base_url).path + request.path
    return head_of(client, request.method, target, {**client.headers(), **request.headers, **framing})


def head_of(client: Client, method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """A header with any target, as it stands."""
    named = {"Host": urlsplit(client.base_url).netloc, **headers}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def read_answer(connection: socket.socket, started: float) -> Answer:
    """What comes back over a bare connection, within its timeout as a whole."""
    deadline = Deadline(connection)
    try:
        with limited(deadline, connection.gettimeout() or 0):
            response = HTTPResponse(connection)
            response.begin()
            content = response.read(LARGEST_ANSWER)
        trouble = None
    except (OSError, HTTPException) as error:
        trouble = f"{type(error).__name__}: {error}"
    waited = time.perf_counter() - started
    if deadline.passed:  # what was read until then ends where the connection was cut
        trouble = "timed out"
    if trouble is not None:
        return Answer(0, {}, b"", waited, f"no answer: {trouble}")
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, content, waited)


def slow_request(client: Client, request: Request, patience: float) -> Answer:
    """Send all of a request but its last byte, and wait for the server to give up."""
    started = time.perf_counter()
    with open_socket(client, patience) as connection:
        connection.sendall(head(client, request, len(request.body)) + request.body[:-1])
        return read_answer(connection, started)


class Flood:
    """More calls at once than a server may want: first slow ones, then callers that never finish their bodies.

    The first fill the engine, and are sent once, whoever asks; the others fill what stands before it.
    """

    def __init__(self, session: Session) -> None:
        self._client = session.client
        self._calls = session.options.flood
        self._lock = threading.Lock()
        self._slow: list[Answer] | None = None
        body = {**session.minimal, "max_tokens": HELD_TOKENS}
        script = {"prefer_tokens": ["a"], "delay_ms_each": 1000 * HELD_S / HELD_TOKENS}
        self._request = post(session.main.path, body, script_header(script if session.facts.scripted else None))
        self._short = post(session.main.path, {**session.minimal, "max_tokens": 1})

    def met(self, status: int) -> tuple[Request, Answer] | None:
        """A call that was answered with this status, and its answer."""
        with self._lock:
            if self._slow is None:
                self._slow = self._all_at_once()
            found = _first(self._slow, status)
            if found is not None:
                return self._request, found
            found = _first(self._beside_unfinished(status), status)
            return None if found is None else (self._short, found)

    def _all_at_once(self) -> list[Answer]:
        with ThreadPoolExecutor(self._calls) as pool:
            answers = list(pool.map(self._client.send, [self._request] * self._calls))
        self._short_calls(until=200)
        return answers

    def _beside_unfinished(self, status: int) -> list[Answer]:
        """Answers to short calls, up to the first with this status, while others keep sending."""
        raw = head(self._client, self._short, len(self._short.body)) + self._short.body[:-1]
        with ExitStack() as held:
            for _ in range(self._calls):
                held.enter_context(open_socket(self._client, NOTICED_WITHIN_S)).sendall(raw)
            answers = self._short_calls(until=status)
        self._short_calls(until=200)
        return answers

    def _short_calls(self, until: int) -> list[Answer]:
        """Answers up to the first with this status, within the time that a server has to notice something."""
        answers: list[Answer] = []
        deadline = time.monotonic() + NOTICED_WITHIN_S
        while time.monotonic() < deadline:
            answers.append(self._client.send(self._short))
            if answers[-1].status == until:
                break
        return answers


def _first(answers: Iterable[Answer], status: int) -> Answer | None:
    return next((answer for answer in answers if answer.status == status), None)
