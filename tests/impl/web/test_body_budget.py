"""The bound on the bytes of all bodies."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from isogloss.web.limits.body_budget import BodyBudget
from isogloss_spec import Fault

BODY = b'{"model": "m", "prompt": "hi"}'
ROOM = 1000
BIG = b'{"model": "m", "prompt": "%s"}' % (b"x" * 800)


def test_room_at_the_edge_and_one_byte_over() -> None:
    budget = BodyBudget(10)
    with budget.share() as one, budget.share() as two:
        one.add(4)
        two.add(6)
        with pytest.raises(Fault, match="overloaded"):
            one.add(1)
        assert budget.held == 10
    assert budget.held == 0


def test_a_share_is_given_back_when_its_block_fails() -> None:
    budget = BodyBudget(10)
    with pytest.raises(ValueError, match="x"), budget.share() as share:
        share.add(3)
        raise ValueError("x")
    assert budget.held == 0


@pytest.fixture
def tight(make_live: Any) -> Any:
    return make_live(max_open_body_bytes=ROOM, body_timeout_s=3, max_open_requests=100)


@contextlib.contextmanager
def _held(live: Any, wire: Any) -> Iterator[socket.socket]:
    """A connection with most of a body that leaves no room for a second one."""
    with live.connect() as sock:
        sock.sendall(wire.post(BIG)[:-1])
        _until(live, 503)
        yield sock


def _until(live: Any, status: int) -> None:
    """Send bodies of which two have no room until one is answered so."""
    deadline = time.monotonic() + 30
    while live.post(BIG).status != status:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_bodies_that_would_take_too_much_are_refused(tight: Any, wire: Any) -> None:
    with _held(tight, wire) as sock:
        answer = tight.post(BIG)
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert tight.post(BODY).status == 200
        sock.sendall(BIG[-1:])
        assert wire.read(sock).status == 200
    assert tight.post(BIG).status == 200


def test_what_is_only_announced_takes_no_room(tight: Any, wire: Any) -> None:
    with tight.connect() as sock:
        sock.sendall(wire.head("POST", "/v1/completions", Content_Type="application/json", Content_Length="999"))
        time.sleep(0.05)
        assert tight.post(BIG).status == 200


def test_a_body_takes_room_until_it_is_answered(tight: Any, wire: Any) -> None:
    with tight.connect() as sock:
        sock.sendall(wire.post(BIG, X_Isogloss_Do="wait"))
        _until(tight, 503)
        assert tight.post(BIG).status == 503
        assert tight.post(BODY).status == 200
        tight.web.fake.release.set()
        assert wire.read(sock).status == 200
    assert tight.post(BIG).status == 200


def test_who_leaves_gives_back(tight: Any, wire: Any) -> None:
    with _held(tight, wire):
        assert tight.post(BIG).status == 503
    _until(tight, 200)


def test_who_takes_too_long_gives_back(tight: Any, wire: Any) -> None:
    with _held(tight, wire) as sock:
        assert wire.read(sock).status == 408
        assert tight.post(BIG).status == 200


@pytest.mark.parametrize(
    ("raw", "status"),
    [(b"[" * 900, 400), (BIG[:-1] + b', "nope": 1}', 400), (BIG.replace(b'"m"', b'"x"'), 404)],
)
def test_who_is_refused_gives_back(tight: Any, raw: bytes, status: int) -> None:
    for _ in range(3):
        assert tight.post(raw).status == status
    assert tight.post(BIG).status == 200


def test_who_is_told_that_there_is_no_room_gives_back(tight: Any, wire: Any) -> None:
    for _ in range(3):
        assert tight.post(b" " * (ROOM + 1)).status == 503
    assert tight.post(BIG).status == 200
