"""The client blames no server for what connections do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from isogloss_conformance.client import Client, Request

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def serving() -> Iterator[str]:
    """A server that promises to keep connections and closes each when the second request comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def serve(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            connection.sendall(ANSWER)
            connection.recv(65536)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_that_is_closed_when_idle_loses_no_answer(streamed: bool) -> None:
    request = Request("GET", "/v1/models", headers={})
    with serving() as url:
        client = Client(url, timeout=5)
        answers = [client.record(request) if streamed else client.send(request) for _ in range(3)]
        client.close()
    assert [(answer.status, answer.trouble) for answer in answers] == [(200, None)] * 3
