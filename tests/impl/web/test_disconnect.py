"""Whoever leaves frees what he held, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from isogloss.web.protocol import ConnectionLimits
from isogloss.web.serving import Serving


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_leaving_cancels_a_whole_answer(make_live: Any, wire: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    live = make_live(max_open_requests=1)
    with live.connect() as sock:
        sock.sendall(wire.post(X_Isogloss_Do="wait"))
        _until(lambda: len(live.web.fake.calls) == 1)
    _until(lambda: live.web.fake.cancelled == 1)
    _until(lambda: live.post().status == 200)
    assert live.web.fake.cancelled == 1
    assert "status=499" in caplog.text
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
    assert live.web.drain.running == set()


def test_leaving_with_another_request_in_the_pipeline(make_live: Any, wire: Any) -> None:
    live = make_live()
    with live.connect() as sock:
        sock.sendall(wire.post(X_Isogloss_Do="wait") + wire.post(X_Isogloss_Do="wait"))
        _until(lambda: len(live.web.fake.calls) == 1)
        time.sleep(0.05)
    _until(lambda: live.web.fake.cancelled == 1)
    assert live.web.drain.running == set()
    assert len(live.web.fake.calls) == 1


def test_leaving_closes_a_stream(make_live: Any, wire: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    live = make_live(max_open_requests=1)
    with live.connect() as sock:
        sock.sendall(wire.post({"stream": True}, X_Isogloss_Do="endless"))
        assert b"data: " in sock.recv(65536) + sock.recv(65536)
    _until(lambda: live.web.fake.closed == 1)
    _until(lambda: live.post().status == 200)
    assert live.web.fake.closed == 1
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_leaving_a_silent_stream_closes_it_before_the_next_event(make_live: Any, wire: Any) -> None:
    live = make_live(keepalive=30)
    with live.connect() as sock:
        sock.sendall(wire.post({"stream": True}, X_Isogloss_Do="silent"))
        assert b"HTTP/1.1 200" in sock.recv(65536)
    _until(lambda: live.web.fake.closed == 1)


def test_a_finished_stream_is_closed_once(make_live: Any) -> None:
    live = make_live()
    live.post({"stream": True})
    live.post({"stream": True}, X_Isogloss_Do="boom-late")
    assert live.web.fake.closed == 2


def test_a_reader_that_does_not_read_is_cut(make_live: Any, wire: Any) -> None:
    live = make_live(serving=Serving(ConnectionLimits(write_timeout_s=0.3)))
    with live.connect() as sock:
        sock.sendall(wire.post({"stream": True}, X_Isogloss_Do="flood"))
        _until(lambda: live.web.fake.closed == 1)
    assert live.post().status == 200


def test_a_slow_reader_that_keeps_up_is_served(make_live: Any, wire: Any) -> None:
    live = make_live(serving=Serving(ConnectionLimits(write_timeout_s=1.0)))
    with live.connect() as sock:
        sock.sendall(wire.post({"stream": True}, X_Isogloss_Do="flood"))
        begun = time.monotonic()
        while time.monotonic() < begun + 2:
            assert sock.recv(2_000_000)
            time.sleep(0.01)
        assert live.web.fake.closed == 0
    _until(lambda: live.web.fake.closed == 1)


def test_a_reader_that_caught_up_is_not_cut_later(make_live: Any, wire: Any) -> None:
    live = make_live(serving=Serving(ConnectionLimits(write_timeout_s=2.0)))
    with live.connect() as sock:
        sock.sendall(wire.post({"stream": True}, X_Isogloss_Do="burst-then-ticks"))
        time.sleep(0.1)
        assert wire.read(sock).events[-1] == "[DONE]"


def test_two_hundred_leave_and_nothing_stays(make_live: Any, wire: Any) -> None:
    live = make_live()
    for _ in range(4):
        socks = [live.connect() for _ in range(50)]
        for sock in socks:
            sock.sendall(wire.post({"stream": True}, X_Isogloss_Do="endless"))
        for sock in socks:
            sock.recv(1000)
            sock.close()
    _until(lambda: live.web.fake.closed == 200)
    _until(lambda: not live.server.server_state.tasks)
    assert live.web.drain.running == set()
