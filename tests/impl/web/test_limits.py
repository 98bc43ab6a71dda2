"""Each limit at its edge and beyond."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from isogloss.web.protocol import ConnectionLimits
from isogloss.web.serving import Serving

BODY = b'{"model": "m", "prompt": "hi"}'


@pytest.fixture
def small(make_live: Any) -> Any:
    return make_live(body_limit=len(BODY))


def test_body_at_the_limit_and_one_byte_over(small: Any) -> None:
    assert small.post(BODY).status == 200
    answer = small.post(BODY + b" ")
    assert answer.status == 413
    assert answer.json["message"] == f"The body is larger than {len(BODY)} bytes."


@pytest.mark.parametrize(("extra", "status"), [(b"", 200), (b" ", 413)])
def test_chunked_body_at_the_limit_and_one_byte_over(small: Any, wire: Any, extra: bytes, status: int) -> None:
    raw = wire.head("POST", "/nim/v1/completions", Content_Type="application/json", Transfer_Encoding="chunked")
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY + extra)
    assert small.talk(raw + chunks + b"0\r\n\r\n").status == status


def test_a_declared_size_is_refused_before_the_body_comes(small: Any, wire: Any) -> None:
    head = wire.head("POST", "/nim/v1/completions", Content_Type="application/json", Content_Length="1000000000")
    assert small.talk(head).status == 413


def test_an_endless_chunked_body_is_refused_early(small: Any, wire: Any) -> None:
    raw = wire.head("POST", "/nim/v1/completions", Content_Type="application/json", Transfer_Encoding="chunked")
    assert small.talk(raw + b"40\r\n" + b"x" * 64 + b"\r\n").status == 413


def test_the_dialects_limit_is_its_own(live: Any) -> None:
    assert live.web.apis[0].body_limit == 33554432


def test_body_time(make_live: Any, wire: Any) -> None:
    live = make_live(body_timeout_s=0.2)
    begun = time.monotonic()
    answer = live.talk(wire.post(BODY)[:-1])
    assert answer.status == 408
    assert answer.json["type"] == "RequestTimeoutError"
    assert 0.15 < time.monotonic() - begun < 15
    assert live.post(BODY).status == 200


def test_body_time_does_not_bound_the_answer(make_live: Any) -> None:
    live = make_live(body_timeout_s=0.2)
    with ThreadPoolExecutor() as pool:
        future = pool.submit(live.post, BODY, X_Isogloss_Do="wait")
        time.sleep(0.4)
        live.web.fake.release.set()
        assert future.result().status == 200


def test_a_disconnect_while_the_body_comes_is_no_failure(live: Any, wire: Any, caplog: Any) -> None:
    caplog.set_level("INFO")
    with live.connect() as sock:
        sock.sendall(wire.post(BODY, X_Request_Id="left")[:-1])
        time.sleep(0.05)
    _until(lambda: "id=left" in caplog.text)
    assert "status=499" in caplog.text
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def _waiting(live: Any, pool: ThreadPoolExecutor, count: int, **headers: str) -> list[Any]:
    """Open requests that wait for the fake to be released."""
    before = len(live.web.fake.calls)
    futures = [pool.submit(live.post, BODY, X_Isogloss_Do="wait", **headers) for _ in range(count)]
    _until(lambda: len(live.web.fake.calls) == before + count)
    return futures


def _until(done: Any) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_open_requests(make_live: Any) -> None:
    live = make_live(max_open_requests=2)
    with ThreadPoolExecutor() as pool:
        futures = _waiting(live, pool, 2)
        answer = live.post(BODY)
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert live.get("/nim/v1/models").status == 200
        live.web.fake.release.set()
        assert [future.result().status for future in futures] == [200, 200]
    assert live.post(BODY).status == 200


def test_open_requests_per_key(make_live: Any) -> None:
    live = make_live(keys=("k1", "k2"), max_open_requests_per_key=1)
    with ThreadPoolExecutor() as pool:
        futures = _waiting(live, pool, 1, Authorization="Bearer k1")
        answer = live.post(BODY, Authorization="Bearer k1")
        assert answer.status == 429
        assert answer.headers["retry-after"] == "1"
        assert live.post(BODY, Authorization="Bearer k2").status == 200
        live.web.fake.release.set()
        assert futures[0].result().status == 200
    assert live.post(BODY, Authorization="Bearer k1").status == 200


def test_refused_requests_hold_no_place(make_live: Any) -> None:
    live = make_live(max_open_requests=1, keys=("k",), max_open_requests_per_key=1)
    for _ in range(3):
        assert live.post(b"{", Authorization="Bearer k").status == 400
        assert live.post(BODY, Authorization="Bearer k", X_Isogloss_Do="boom").status == 500
    assert live.post(BODY, Authorization="Bearer k").status == 200


def test_header_size(make_live: Any) -> None:
    live = make_live(serving=Serving(ConnectionLimits(header_bytes=2000)))
    assert live.get("/health/live", X_Padding="x" * 1800).status == 200
    assert live.get("/health/live", X_Padding="x" * 2000).status == 431
    assert live.post({"prompt": "x" * 5000}).status == 200
    assert live.post({"prompt": "x" * 5000}, X_Padding="x" * 2000).status == 431


def test_an_endless_header_is_cut(make_live: Any) -> None:
    live = make_live(serving=Serving(ConnectionLimits(header_bytes=2000)))
    with live.connect() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 3000)
        assert sock.makefile("rb").read().startswith(b"HTTP/1.1 431 ")


@pytest.fixture
def hasty(make_live: Any) -> Any:
    return make_live(serving=Serving(ConnectionLimits(header_timeout_s=0.6), keep_alive_s=1.5))


@pytest.mark.parametrize("sent", [b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_header_time(hasty: Any, sent: bytes) -> None:
    with hasty.connect() as sock:
        sock.sendall(sent)
        assert sock.makefile("rb").read().startswith(b"HTTP/1.1 408 ")


def test_a_silent_connection_is_closed_without_a_word(hasty: Any) -> None:
    with hasty.connect() as sock:
        assert sock.recv(100) == b""


def test_a_trickled_header_does_not_extend_its_time(hasty: Any) -> None:
    begun = time.monotonic()
    with hasty.connect() as sock:
        try:
            while time.monotonic() < begun + 30:
                sock.sendall(b"G")
                time.sleep(0.02)
        except OSError:
            pass
    assert time.monotonic() - begun < 20


def test_header_time_does_not_bound_the_answer(hasty: Any) -> None:
    with ThreadPoolExecutor() as pool:
        future = pool.submit(hasty.post, BODY, X_Isogloss_Do="wait")
        time.sleep(1.0)
        hasty.web.fake.release.set()
        assert future.result().status == 200


def test_the_next_header_has_its_time_too(hasty: Any, wire: Any) -> None:
    with hasty.connect() as sock:
        sock.sendall(wire.post(BODY))
        assert wire.read(sock).status == 200
        begun = time.monotonic()
        sock.sendall(b"GET / HT")
        assert sock.makefile("rb").read().startswith(b"HTTP/1.1 408 ")
        assert 0.5 < time.monotonic() - begun < 20


def test_idle_connections_are_closed(hasty: Any, wire: Any) -> None:
    with hasty.connect() as sock:
        sock.sendall(wire.post(BODY))
        assert wire.read(sock).status == 200
        assert sock.recv(100) == b""


def test_a_body_behind_a_refusal_is_not_read_for_ever(hasty: Any, wire: Any) -> None:
    begun = time.monotonic()
    with hasty.connect() as sock:
        sock.sendall(wire.head("POST", "/nope", Content_Length="1000000"))
        assert wire.read(sock).status == 404
        try:
            while time.monotonic() < begun + 30:
                sock.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            pass
    assert time.monotonic() - begun < 20
