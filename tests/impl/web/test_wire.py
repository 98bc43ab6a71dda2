"""Odd requests over a real socket: every row gets a well-formed answer of the dialect, never a 500."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

GOOD = json.dumps({"model": "m", "prompt": "hi"}).encode()

BODIES = {
    "malformed": (b'{"model":', 400),
    "empty": (b"", 400),
    "invalid utf-8": (b'{"model": "m", "prompt": "\xff"}', 400),
    "utf-16": ('{"model": "m", "prompt": "hi"}'.encode("utf-16"), 400),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD, 400),
    "5000 digits": (b'{"model": "m", "prompt": "hi", "n": ' + b"1" * 5000 + b"}", 400),
    "deep nesting": (b'{"model": "m", "prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "NaN": (b'{"model": "m", "prompt": "hi", "temperature": NaN}', 400),
    "1e400": (b'{"model": "m", "prompt": "hi", "temperature": 1e400}', 400),
    "duplicate key": (b'{"model": "m", "model": "m", "prompt": "hi"}', 400),
    "lone surrogate": (b'{"model": "m", "prompt": "\\ud800"}', 400),
    "trailing text": (GOOD + b" x", 400),
    "null": (b"null", 422),
    "list": (b"[]", 422),
    "missing field": (b'{"model": "m"}', 422),
    "unknown field": (b'{"model": "m", "prompt": "hi", "nope": 1}', 400),
    "out of range": (b'{"model": "m", "prompt": "hi", "top_p": 7}', 422),
    "unknown model": (b'{"model": "x", "prompt": "hi"}', 404),
    "feature": (b'{"model": "m", "prompt": "hi", "guided_regex": "a"}', 400),
}


@pytest.mark.parametrize(("raw", "status"), BODIES.values(), ids=BODIES)
def test_bad_bodies_are_refused_in_the_dialects_form(live: Any, raw: bytes, status: int) -> None:
    calls = len(live.web.fake.calls)
    answer = live.post(raw)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["object"] == "error"
    assert answer.json["code"] == status
    assert len(live.web.fake.calls) == calls


CONTENT_TYPES = {
    "plain": ("application/json", 200),
    "capitals": ("Application/JSON", 200),
    "charset": ("application/json; charset=utf-8", 200),
    "quoted charset in capitals": ('application/json;Charset="UTF-8"', 200),
    "other parameter": ("application/json; profile=x", 200),
    "latin-1": ("application/json; charset=latin-1", 415),
    "text": ("text/plain", 415),
    "form": ("application/x-www-form-urlencoded", 415),
    "suffix": ("application/ld+json", 415),
    "prefix": ("application/jsonx", 415),
    "empty": ("", 415),
}


@pytest.mark.parametrize(("content_type", "status"), CONTENT_TYPES.values(), ids=CONTENT_TYPES)
def test_content_types(live: Any, content_type: str, status: int) -> None:
    assert live.post(GOOD, Content_Type=content_type).status == status


def test_a_missing_content_type_is_refused(live: Any, wire: Any) -> None:
    answer = live.talk(wire.head("POST", "/nim/v1/completions", Content_Length=str(len(GOOD))) + GOOD)
    assert answer.status == 415


@pytest.mark.parametrize(("encoding", "status"), [("identity", 200), ("gzip", 415), ("br", 415)])
def test_content_encodings(live: Any, encoding: str, status: int) -> None:
    assert live.post(GOOD, Content_Encoding=encoding).status == status


def test_chunked_body(live: Any, wire: Any) -> None:
    parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (GOOD[:5], GOOD[5:]))
    raw = wire.head("POST", "/nim/v1/completions", Content_Type="application/json", Transfer_Encoding="chunked")
    assert live.talk(raw + parts + b"0\r\n\r\n").status == 200


def test_body_that_comes_byte_by_byte(live: Any, wire: Any) -> None:
    with live.connect() as sock:
        for byte in wire.post(GOOD):
            sock.sendall(bytes([byte]))
        assert wire.read(sock).status == 200


def test_expect_100_continue(live: Any, wire: Any) -> None:
    head, body = wire.post(GOOD, Expect="100-continue").split(b"\r\n\r\n")
    with live.connect() as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert wire.read(sock).status == 200


def test_a_refusal_needs_no_100_continue(live: Any, wire: Any) -> None:
    head, _ = wire.post(GOOD, Expect="100-continue", Content_Type="text/plain").split(b"\r\n\r\n")
    with live.connect() as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert wire.read(sock).status == 415


def test_pipelined_requests_are_answered_in_order(live: Any, wire: Any) -> None:
    with live.connect() as sock:
        sock.sendall(wire.post(GOOD, X_Request_Id="one") + wire.post(b"{", X_Request_Id="two"))
        received = b""
        while received.count(b"HTTP/1.1") < 2 or not received.endswith(b"}"):
            received += sock.recv(65536)
    assert received.index(b"x-request-id: one") < received.index(b"x-request-id: two")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
def test_wrong_methods(live: Any, method: str) -> None:
    with live.connect() as sock:
        sock.sendall(f"{method} /nim/v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        received = sock.makefile("rb").read()
    assert received.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nallow: POST\r\n" in received
    assert (b"MethodNotAllowedError" in received) == (method != "HEAD")


def test_post_and_head_where_only_get_is(live: Any) -> None:
    assert live.get("/nim/v1/models", method="POST").headers["allow"] == "GET"
    with live.connect() as sock:
        sock.sendall(b"HEAD /nim/v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert sock.makefile("rb").read().startswith(b"HTTP/1.1 405 ")


def test_allow_names_a_known_method_for_a_made_up_one(live: Any) -> None:
    with live.connect() as sock:
        sock.sendall(b"BREW /nim/v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 400 ")


PATHS = {
    "/nim/v1/nope": "nim",
    "/nim": "nim",
    "/nim/": "nim",
    "/nim/v1/completions/": "nim",
    "/v1/completions/": "nim",
    "/v1/nope": "nim",
    "/nimx/v1/completions": "service",
    "/nope": "service",
    "//nim/v1/models": "service",
    "/health/": "service",
    "/metrics/": "service",
    "/nim/v1/../v1/nope": "nim",
    "/nim/v1/completion%73": "nim",
    "/nim/v1/completions%23f": "nim",
    "/nim/v1%2fcompletions": "nim",
    "/nim%2fv1/completions": "service",
    "/%6eim/v1/completions": "service",
    "/nim/v1/completions%": "nim",
    "/nim/v1/completions%00": "nim",
}


@pytest.mark.parametrize(("path", "owner"), PATHS.items())
def test_unknown_paths_answer_in_the_form_of_the_nearest_mount(live: Any, path: str, owner: str) -> None:
    answer = live.post(GOOD, path=path)
    assert answer.status == 404
    if owner == "nim":
        assert answer.json["type"] == "NotFoundError"
    else:
        assert answer.json["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"GET /nim/\xff HTTP/1.1\r\n\r\n",
        b"POST /nim/v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /nim/v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /nim/v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /nim/v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_http_request_is_refused_and_closed(live: Any, raw: bytes) -> None:
    with live.connect() as sock:
        sock.sendall(raw)
        received = sock.makefile("rb").read()
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert live.get("/health/live").status == 200


CHUNKED = b"POST /nim/v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
BROKEN_CHUNKS = [b"zz\r\n", b"-1\r\n", b"3\r\nabcdef\r\n", b"3\r\nabc\r\nq", b"11111111111111111\r\n"]


@pytest.mark.parametrize("chunks", BROKEN_CHUNKS)
@pytest.mark.parametrize("pause", [False, True])
def test_a_body_whose_framing_is_broken(live: Any, chunks: bytes, pause: bool) -> None:
    with live.connect() as sock:
        sock.sendall(CHUNKED % b"application/json")
        if pause:
            time.sleep(0.05)
        sock.sendall(chunks)
        received = sock.makefile("rb").read()
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert received.count(b"HTTP/1.1") == 1
    assert live.web.drain.running == set()


def test_a_broken_body_behind_an_answer_gets_no_second_one(live: Any) -> None:
    with live.connect() as sock:
        sock.sendall(CHUNKED % b"text/plain")
        received = sock.recv(10_000)
        sock.sendall(b"zz\r\n")
        received += sock.makefile("rb").read()
    assert received.startswith(b"HTTP/1.1 415 ")
    assert received.count(b"HTTP/1.1") == 1


def test_a_broken_request_behind_one_that_runs_is_not_taken_for_its_answer(live: Any, wire: Any) -> None:
    with live.connect() as sock:
        sock.sendall(wire.post(GOOD, X_Isogloss_Do="wait") + b"no http\r\n\r\n")
        assert sock.makefile("rb").read() == b""
