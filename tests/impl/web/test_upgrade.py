"""Offers of another protocol are ignored, and cost the request nothing."""

from __future__ import annotations

import time
from typing import Any

import pytest

BODY = b'{"model": "m", "prompt": "hi"}'
H2C = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2_Settings": "AAMAAABk"}


def _chunked(raw: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (raw[:7], raw[7:])) + b"0\r\n\r\n"


def _statuses(sock: Any) -> list[bytes]:
    received = sock.makefile("rb").read()
    return [answer[:3] for answer in received.split(b"HTTP/1.1 ")[1:]]


OFFERS = {
    "h2c": H2C,
    "websocket": {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Key": "x"},
    "odd case": {"connection": "keep-alive, uPGRADE", "uPgrade": "H2C, foo/2"},
    "nothing named": {"Connection": "upgrade", "Upgrade": ""},
    "no token": {"Upgrade": "h2c"},
    "no offer": {"Connection": "upgrade"},
    "to be closed": {"Connection": "Upgrade, close", "Upgrade": "h2c"},
}


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_a_body_behind_an_offer_is_read(live: Any, offer: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    assert live.post(BODY, **offer).status == 200
    assert "ip install" not in caplog.text
    assert "pgrade" not in caplog.text


def test_a_chunked_body_behind_an_offer_is_read(live: Any, wire: Any) -> None:
    fields = {"Content_Type": "application/json", "Transfer_Encoding": "chunked", **H2C}
    head = wire.head("POST", "/nim/v1/completions", **fields)
    assert live.talk(head + _chunked(BODY)).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_offer_without_a_body(live: Any, method: str) -> None:
    assert live.get("/nim/v1/models", method=method, **H2C).status == (200 if method == "GET" else 405)


def test_an_offer_that_comes_byte_by_byte(live: Any, wire: Any) -> None:
    with live.connect() as sock:
        for byte in wire.post(BODY, **H2C):
            sock.sendall(bytes([byte]))
        assert wire.read(sock).status == 200


@pytest.mark.parametrize("size", [3, 60, 150, 250, 300, 330, 1000, 100_000])
def test_offers_in_a_pipeline(live: Any, wire: Any, size: int) -> None:
    """Requests with and without an offer and a body, in packets that end anywhere."""
    head = wire.head("POST", "/nim/v1/completions", Content_Type="application/json", Transfer_Encoding="chunked", **H2C)
    requests = [
        wire.post(BODY, **H2C),
        wire.head("GET", "/nim/v1/models", **H2C),
        wire.post(b"{"),
        head + _chunked(BODY),
        wire.post(BODY),
        wire.post(BODY, **H2C | {"Connection": "Upgrade, close"}),
    ]
    raw = b"".join(requests)
    with live.connect() as sock:
        for start in range(0, len(raw), size):
            sock.sendall(raw[start : start + size])
            time.sleep(0.002)
        assert _statuses(sock) == [b"200", b"200", b"400", b"200", b"200", b"200"]


def test_the_handler_sees_no_offer_and_all_else(live: Any, wire: Any) -> None:
    live.post(BODY, X_Isogloss_Do="overloaded", **H2C)
    assert live.web.fake.calls[-1].hints == {"x-isogloss-do": "overloaded"}


def test_expect_100_continue_with_an_offer(live: Any, wire: Any) -> None:
    head, body = wire.post(BODY, Expect="100-continue", **H2C).split(b"\r\n\r\n")
    with live.connect() as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert wire.read(sock).status == 200


def test_an_offer_frees_no_header_of_its_bounds(live: Any, wire: Any) -> None:
    with live.connect() as sock:
        sock.sendall(wire.post(BODY, X_Long="x" * 70_000, **H2C))
        assert sock.recv(100).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("target", ["x:1", "a.b/x:1", "http://a/"])
def test_connect_is_refused(live: Any, target: str) -> None:
    with live.connect() as sock:
        sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert sock.makefile("rb").read().startswith(b"HTTP/1.1 400 ")


def test_a_body_whose_framing_is_doubtful_stays_refused(live: Any, wire: Any) -> None:
    with live.connect() as sock:
        sock.sendall(wire.post(BODY, Transfer_Encoding="chunked", **H2C))
        assert sock.recv(100).startswith(b"HTTP/1.1 400 ")
