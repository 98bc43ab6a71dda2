"""Whatever a server does, the suite ends soon, blames rightly, and keeps what is secret."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import isogloss_api
import pytest
from isogloss_conformance import client as client_module
from isogloss_conformance.checks import Check
from isogloss_conformance.cli import main
from isogloss_conformance.client import AddressError, Client, Request, post
from isogloss_conformance.effects.caller import Caller
from isogloss_conformance.effects.step import EffectsStep
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecast
from isogloss_conformance.patience import open_socket, read_answer
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.runner import Runner
from isogloss_conformance.session import Facts, Session

KEY = "a-secret-key"
MODELS = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}
Answering = Callable[[socket.socket, bytes], None]


@contextmanager
def serving(answer: Answering) -> Iterator[str]:
    """A server that reads a request and leaves the rest to `answer`."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                answer(self.request, received(self.request))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/nim"
        server.shutdown()


def received(connection: socket.socket) -> bytes:
    """The head of a request. Its body is read too: otherwise closing the connection resets it."""
    with connection.makefile("rb", buffering=0) as lines:
        head = b"".join(iter(lambda: lines.readline().rstrip() + b"\r\n", b"\r\n"))
        length = next((line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b":0")
        left = int(length.partition(b":")[2])
        while left:
            left -= len(lines.read(left)) or left
    return head


def body(content: bytes, *headers: str, status: int = 200) -> bytes:
    named = ("Content-Type: application/json", f"Content-Length: {len(content)}", "Connection: close", *headers)
    return "\r\n".join([f"HTTP/1.1 {status} X", *named, "", ""]).encode() + content


def plain(content: bytes, *headers: str, status: int = 200) -> Answering:
    """The list of models where it is asked for, otherwise always the same."""

    def answer(connection: socket.socket, head: bytes) -> None:
        listed = b"/models" in head.partition(b"\r\n")[0]
        connection.sendall(body(json.dumps(MODELS).encode()) if listed else body(content, *headers, status=status))

    return answer


def dripping(connection: socket.socket, head: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


def dripping_header(connection: socket.socket, head: bytes) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.05)


def silent(connection: socket.socket, head: bytes) -> None:
    connection.recv(1)


@pytest.mark.parametrize("answer", [dripping, dripping_header, silent])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_without_end_is_cut_off(answer: Answering, streamed: bool) -> None:
    request = post("/v1/completions", {})
    with serving(answer) as url:
        client = Client(url, timeout=0.4)
        started = time.monotonic()
        found = client.record(request) if streamed else client.send(request)
        assert time.monotonic() - started < 20
        client.close()
    assert found.trouble is not None


def test_a_bare_connection_is_cut_off_too() -> None:
    with serving(dripping) as url:
        client = Client(url)
        with open_socket(client, 0.3) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            started = time.monotonic()
            assert read_answer(connection, time.perf_counter()).trouble == "no answer: timed out"
            assert time.monotonic() - started < 20
        client.close()


def test_no_more_than_so_many_bytes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LARGEST_ANSWER", 100)
    with serving(plain(b" " * 200)) as url:
        client = Client(url)
        found = client.send(post("/v1/completions", {}))
        client.close()
    assert found.trouble == "no answer: it is longer than 100 bytes"


def test_a_server_that_answers_nothing_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "GIVEN_UP_AFTER", 2)
    with serving(silent) as url:
        client = Client(url, timeout=0.1)
        for _ in range(3):
            client.send(post("/v1/completions", {}))
        assert client.gave_up
        assert client.send(post("/v1/completions", {})).trouble == client_module.NOT_ASKED
        client.close()


@contextmanager
def session(answer: Answering, *, key: str | None = None) -> Iterator[Session]:
    with serving(answer) as url:
        client = Client(url, key=key, timeout=5)
        yield Session(isogloss_api.document("nim"), client, Facts("m", 512))
        client.close()


ODD = (
    b'{"id": "\xff"}',
    b"[" * 100_000,
    b'{"id": ' + b"9" * 6000 + b"}",
    b" " * 300_000,
    b'{"id": "\\ud800", "choices": [null]}',
)


@pytest.mark.parametrize("content", ODD, ids=range(len(ODD)))
def test_an_unreadable_answer_is_the_servers_fault(content: bytes) -> None:
    with session(plain(content)) as found:
        request = post(found.main.path, found.minimal)
        outcome = Exchange(found, plain=True).ask(request, found.main, Forecast(True))
    assert outcome.status is Status.FAIL, outcome.got


@pytest.mark.parametrize("choices", ["x", [None], [[]], {"a": 1}, [{"text": 5, "logprobs": 7}]], ids=str)
def test_a_misshapen_completion_is_the_servers_fault(choices: object) -> None:
    with session(plain(json.dumps({"choices": choices, "usage": 3}).encode())) as found:
        statuses = {check.id: check.run().status for check in EffectsStep(found).checks()}
    assert Status.ERROR not in statuses.values(), statuses


def test_our_own_fault_is_not_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Caller, "misshapen", lambda self: None)
    with session(plain(b'{"choices": [null]}')) as found:
        check = next(check for check in EffectsStep(found).checks() if check.id == "nim/effects/max_tokens")
        assert check.run().status is Status.ERROR


def test_a_packed_answer_is_named_as_such() -> None:
    with session(plain(b"\x1f\x8b", "Content-Encoding: gzip")) as found:
        request = post(found.main.path, found.minimal)
        outcome = Exchange(found, plain=True).ask(request, found.main, Forecast(True))
    assert outcome.status is Status.FAIL
    assert "packed with gzip" in outcome.got


def test_nothing_packed_is_asked_for() -> None:
    heads: list[bytes] = []

    def answer(connection: socket.socket, head: bytes) -> None:
        heads.append(head)
        connection.sendall(body(b"{}"))

    with serving(answer) as url:
        client = Client(url)
        client.send(Request("GET", "/v1/models", headers={}))
        client.close()
    assert b"accept-encoding: identity" in heads[0].lower()


def repeating(calls: int) -> Answering:
    """Puts the header that it got into each error, behind so many calls that are answered."""
    left = [calls]

    def answer(connection: socket.socket, head: bytes) -> None:
        told = [line for line in head.decode().split("\r\n") if line.lower().startswith(("authorization", "x-other"))]
        left[0] -= head.startswith(b"POST")
        status = 401 if left[0] < 0 else 200
        plain(json.dumps({"error": " ".join(told)}).encode(), status=status)(connection, head)

    return answer


@pytest.mark.parametrize("calls", [0, 1])
def test_no_report_shows_what_servers_repeat(tmp_path: Path, capsys: pytest.CaptureFixture[str], calls: int) -> None:
    with serving(repeating(calls)) as url:
        options = ("--api-key", KEY, "--header", "X-Other: another-secret", "--step", "smoke")
        main(["run", "--base-url", url, "--dialect", "nim", *options, "--report-dir", str(tmp_path)])
    shown = "".join(capsys.readouterr()) + "".join(file.read_text() for file in tmp_path.iterdir())
    assert "Bearer $KEY" in shown
    assert len([*tmp_path.iterdir()]) == (4 if calls else 0)
    assert KEY not in shown
    assert "another-secret" not in shown


def test_no_result_shows_what_other_libraries_put_into_their_curl_lines() -> None:
    line = f"curl -H 'Authorization: Bearer {KEY}'"

    class Step:
        name = "fuzz"

        def __init__(self, session: Session) -> None:
            """Nothing to keep."""

        def checks(self) -> list[Check]:
            return [Check("nim/fuzz/all", "fuzz", "", lambda: Outcome(Status.FAIL, line, line, line))]

    with session(silent, key=KEY) as found:
        (result,) = Runner(found, [Step]).run()
    assert {result.expected, result.got, result.curl} == {"curl -H 'Authorization: Bearer $KEY'"}


def test_a_user_in_the_address_is_a_key() -> None:
    client = Client("http://somebody:a-password@127.0.0.1:9/nim/")
    assert client.base_url == "http://127.0.0.1:9/nim"
    assert client.headers()["Authorization"].startswith("Basic ")
    assert "password" not in client.curl(post("/v1/completions", {}))
    client.close()


@pytest.mark.parametrize(
    "url", ["x", "ftp://a", "http://", "http://a:b", "http://a:99999", "http://[::1", "http://a/?b=c", "http://a/#b"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(AddressError):
        Client(url)
