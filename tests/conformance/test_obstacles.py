"""A server that cannot be tested is found out at once, with one finding, what to do, and a command that shows it."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from isogloss_conformance.cli import main
from support.server import KEY, Server

Json = Any
MODELS = {"object": "list", "data": [{"id": "m"}, {"id": "o"}]}
MOST_REQUESTS = 8
"""So few, where a run has hundreds."""


@dataclass(frozen=True)
class Said:
    status: int
    body: Json = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


LISTED = Said(200, MODELS)
NOWHERE = Said(404, {"detail": "Not Found"})
HTML = Said(200, b"<html>Welcome</html>", kind="text/html")
Answering = Callable[[str, str], Said]


class Odd:
    """A server that answers as it is told, and counts."""

    def __init__(self, answer: Answering, tls: ssl.SSLContext | None = None) -> None:
        self.requests = 0
        odd = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

            def handle_all(self) -> None:
                odd.requests += 1
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                said = answer(self.command, self.path)
                self.send_response(said.status)
                named = {"Content-Type": said.kind, "Content-Length": str(len(said.content)), **said.headers}
                for name, value in named.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said.content)

            do_GET = do_POST = handle_all

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.place = f"127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def serving(answer: Answering, tls: ssl.SSLContext | None = None) -> Iterator[Odd]:
    odd = Odd(answer, tls)
    threading.Thread(target=odd.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield odd
    finally:
        odd.server.shutdown()
        odd.server.server_close()


def always(said: Said) -> Answering:
    return lambda method, path: said


def but_listed(said: Said) -> Answering:
    """The list of models where it is asked for."""
    return lambda method, path: LISTED if path.endswith("/v1/models") else said


def only_at(prefix: str, operation: str = "/v1/completions") -> Answering:
    """An API below a prefix, and nothing anywhere else."""

    def answer(method: str, path: str) -> Said:
        known = {f"{prefix}/v1/models": LISTED, f"{prefix}{operation}": Said(200, {"choices": []})}
        return known.get(path, NOWHERE)

    return answer


def refused(capsys: pytest.CaptureFixture[str], url: str, *options: str, dialect: str = "nim") -> str:
    """What a run says that ends at once. The command in it is one that can be given again."""
    assert main(["run", "--base-url", url, "--dialect", dialect, *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    finding, command = said.err.rstrip("\n").split("\n")
    assert finding.startswith("isogloss-conformance: ")
    assert command.strip().startswith("curl ")
    return finding


ODD = {
    "401": (always(Said(401)), "--api-key KEY"),
    "403": (always(Said(403)), "--api-key KEY"),
    "401 but for the list": (but_listed(Said(401)), "--api-key KEY"),
    "404": (always(NOWHERE), "--base-url is where the dialect's /v1 stands"),
    "500": (always(Said(500)), "its log may say why"),
    "500 but for the list": (but_listed(Said(500)), "its log may say why"),
    "503": (but_listed(Said(503)), "try again later"),
    "429": (but_listed(Said(429)), "try again later"),
    "a page": (always(HTML), "does --base-url lead to the API?"),
    "a page but for the list": (but_listed(HTML), "does --base-url lead to the API?"),
    "no models": (always(Said(200, {"data": []})), "give --model NAME"),
    "no list": (lambda method, path: NOWHERE if method == "GET" else Said(200), "give --model NAME"),
    "all refused": (but_listed(Said(400, {"error": "no template"})), "refuses the plainest call"),
    "moved": (
        always(Said(301, headers={"Location": "https://h/nim/v1/models"})),
        "sends callers to https://h/nim: give",
    ),
    "another dialect": (
        only_at("/x", "/v1/chat/completions"),
        "/v1/chat/completions is there, though: try --dialect m",
    ),
}


@pytest.mark.parametrize(("answer", "advice"), ODD.values(), ids=ODD)
def test_one_finding_says_what_to_do(capsys: pytest.CaptureFixture[str], answer: Answering, advice: str) -> None:
    with serving(answer) as odd:
        assert advice in refused(capsys, f"http://{odd.place}/x")
        assert odd.requests <= MOST_REQUESTS


def test_a_key_that_is_not_taken_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(always(Said(401, {"error": f"Bearer {KEY} is wrong"}))) as odd:
        finding = refused(capsys, f"http://{odd.place}", "--api-key", KEY)
    assert "does not take the key that was given" in finding
    assert KEY not in finding


@pytest.mark.parametrize(("base", "prefix"), [("/x/v1", "/x"), ("", "/nim"), ("/y", "/y/nim"), ("/x", "")])
def test_the_api_is_looked_for_nearby(capsys: pytest.CaptureFixture[str], base: str, prefix: str) -> None:
    with serving(only_at(prefix)) as odd:
        assert f"there is an API at http://{odd.place}{prefix}, is that it?" in refused(
            capsys, f"http://{odd.place}{base}"
        )


def test_a_wrong_name_of_the_model(scripted: Server, capsys: pytest.CaptureFixture[str]) -> None:
    advice = "does not serve 'foo': --model NAME, one of "
    with serving(but_listed(Said(404, {"error": "no such model"}))) as odd:
        assert f"{advice}m, o" in refused(capsys, f"http://{odd.place}", "--model", "foo")
    for dialect in ("nim", "mindie"):
        assert f"{advice}scripted" in refused(capsys, f"{scripted.url}/{dialect}", "--model", "foo", dialect=dialect)


def test_errors_of_another_dialect_are_recognised(scripted: Server, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--base-url", f"{scripted.url}/nim", "--only"]
    assert main([*run, "acs/completions/n/nullable", "--dialect", "acs"]) == 0
    assert "look like those of nim" in capsys.readouterr().err
    assert main([*run, "nim/completions/n/nullable", "--dialect", "nim"]) == 0
    assert "look like" not in capsys.readouterr().err


def test_nobody_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is the server running" in refused(capsys, "http://127.0.0.1:9")
    assert "no host of this name" in refused(capsys, "http://nobody.invalid")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for this machine that nobody else vouches for."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("it takes the program openssl")
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    kind = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    subprocess.run(
        [openssl, "req", "-x509", *kind, *subject, "-keyout", made, "-out", f"{made}.crt"],
        check=True,
        capture_output=True,
    )
    made.write_text(made.read_text() + Path(f"{made}.crt").read_text())
    return made


def test_trouble_with_tls(certificate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(certificate)
    with serving(always(NOWHERE), own) as odd:
        assert "--ca FILE" in refused(capsys, f"https://{odd.place}")
        assert "--base-url is where" in refused(capsys, f"https://{odd.place}", "--ca", str(certificate))
        assert "is it http:// or https://?" in refused(capsys, f"http://{odd.place}")
    with serving(always(NOWHERE)) as odd:
        assert "try http:// in place of https://" in refused(capsys, f"https://{odd.place}")
    own.verify_mode = ssl.CERT_REQUIRED
    own.load_verify_locations(certificate)
    with serving(always(NOWHERE), own) as odd:
        assert "--cert FILE" in refused(capsys, f"https://{odd.place}", "--ca", str(certificate))
        good = ("--ca", str(certificate), "--cert", str(certificate))
        assert "--base-url is where" in refused(capsys, f"https://{odd.place}", *good)
