"""The command lines of reports repeat requests byte for byte, in a plain shell."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import certifi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isogloss_conformance.client import Client, Request, post
from isogloss_conformance.curl import LONGEST_PACKED, command

SECRET = "a-secret-$KEY`id`"
OWN = ("user-agent", "accept", "host", "content-length", "accept-encoding", "connection")
"""What each client says of itself."""
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="it takes the program curl")


class Heard:
    """Writes down each request as it comes."""

    def __init__(self, listener: socket.socket) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self._listener = listener

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                first = lines.readline().decode().rsplit(" ", 1)[0]
                raw = iter(lambda lines=lines: lines.readline().decode().rstrip(), "")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in raw)}
                if "expect" in headers:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = lines.read(int(headers.get("content-length", 0)))
                kept = {name: value for name, value in headers.items() if name not in (*OWN, "expect")}
                self.requests.append((first, kept, body))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


@contextmanager
def hearing() -> Iterator[tuple[str, Heard]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = Heard(listener)
        threading.Thread(target=heard.run, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/a", heard


def shell(line: str, **variables: str) -> None:
    subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True, env=os.environ | variables)


REQUESTS = (
    post("/v1/completions", {"prompt": 'it\'s "quoted" \\ $HOME `id` !x %s é€😀'}),
    post("/v1/completions", {"prompt": "\u2028 \x7f \x85 \ufeff"}),
    Request("POST", "/v1/completions", b'{\n\t"seed":\r\n 1}\n\n'),
    Request("POST", "/v1/completions", b'{"model": "\xff\x00\x1b"}'),
    Request("POST", "/v1/completions", b"\x1f\x8b", {"Content-Type": "application/json", "Content-Encoding": "gzip"}),
    Request("POST", "/v1/completions", b"@/etc/hostname", {"Content-Type": "text/plain", "X-Empty": ""}),
    Request("POST", "/v1/completions", b"{}", {}),
    Request("POST", "/v1/completions", b""),
    Request("POST", "/v1/completions", b"{}" + b" " * 4 * 2**20),
    Request("POST", "//v1/x[1]?a=b&c", b"{}"),
    Request("GET", "/v1/models", headers={}),
    Request("DELETE", "/v1/models", headers={}),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=range(len(REQUESTS)))
def test_the_same_is_sent(request_: Request) -> None:
    with hearing() as (url, heard):
        client = Client(url, key=SECRET, headers={"X-Other": "another secret"})
        client.send(request_)
        line = client.curl(request_)
        client.close()
        shell(line, KEY=SECRET, X_OTHER="another secret")
        assert heard.requests[0] == heard.requests[1]
    assert "secret" not in line
    assert len(line) < LONGEST_PACKED


def test_a_request_without_the_key_is_repeated_without_it() -> None:
    wrong = post("/v1/completions", {}, {"Authorization": "Bearer wrong"})
    with hearing() as (url, heard):
        client = Client(url, key=SECRET)
        for request_ in (post("/v1/completions", {}), wrong):
            client.send(request_, with_key=False)
            shell(client.curl(request_, with_key=False), KEY=SECRET)
        client.close()
        assert heard.requests[0] == heard.requests[1]
        assert heard.requests[2] == heard.requests[3]
        assert "authorization" not in heard.requests[0][1]


@settings(max_examples=15)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_any_body_is_repeated(body: bytes) -> None:
    with hearing() as (url, heard):
        shell(command("POST", url, {"Content-Type": "a/b"}, body))
        assert [sent for _, _, sent in heard.requests] == [body]


def test_a_path_stands_as_it_is() -> None:
    target = "//v1/./x/../[1]{2}/%63;x"
    with hearing() as (url, heard):
        client = Client(url)
        shell(client.curl(Request("POST", target, b"{}"), at_root=True))
        client.close()
        assert heard.requests[0][0] == f"POST {target}"


def test_certificates_are_named(tmp_path: Path) -> None:
    trusted = tmp_path / "a b.pem"
    shutil.copy(certifi.where(), trusted)
    client = Client("https://h", authorities=str(trusted))
    assert f" --cacert '{trusted}'" in client.curl(post("/v1/completions", {}))
    client.close()


def test_what_cannot_be_packed_is_left_out() -> None:
    line = command("POST", "http://h", {}, os.urandom(LONGEST_PACKED))
    assert f"…{LONGEST_PACKED} bytes…" in line
    assert len(line) < 300
