"""Stopping: take nothing new, let what runs end, then end it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from isogloss.web.serving import Serving


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_while_draining_nothing_new_is_taken_and_what_runs_ends(make_live: Any) -> None:
    live = make_live()
    with ThreadPoolExecutor() as pool:
        whole = pool.submit(live.post, X_Isogloss_Do="wait")
        stream = pool.submit(live.post, {"stream": True}, X_Isogloss_Do="endless")
        _until(lambda: len(live.web.fake.calls) == 2)
        live.server.stop()
        assert live.get("/health/ready").status == 503
        assert live.get("/nim/v1/health/ready").json["type"] == "ServiceUnavailableError"
        assert live.get("/health/live").status == 200
        assert live.get("/metrics").status == 200
        refused = live.post()
        assert refused.status == 503
        assert refused.headers["retry-after"] == "1"
        live.web.fake.release.set()
        assert whole.result().status == 200
        assert stream.result().events[-1] == "[DONE]"
        assert "error" not in stream.result().events[-2]
    live.thread.join(15)
    assert not live.thread.is_alive()


def test_after_the_drain_time_streams_end_with_an_error_event(make_live: Any) -> None:
    live = make_live(serving=Serving(drain_timeout_s=0.2))
    with ThreadPoolExecutor() as pool:
        whole = pool.submit(live.post, X_Isogloss_Do="wait")
        stream = pool.submit(live.post, {"stream": True}, X_Isogloss_Do="endless")
        _until(lambda: len(live.web.fake.calls) == 2)
        begun = time.monotonic()
        live.server.stop()
        events = stream.result().events
        assert json.loads(events[-2])["code"] == 503
        assert events[-1] == "[DONE]"
        assert whole.result().status == 503
    live.thread.join(15)
    assert not live.thread.is_alive()
    assert 0.2 <= time.monotonic() - begun < 5
    assert (live.web.fake.cancelled, live.web.fake.closed) == (1, 1)


def test_an_idle_server_stops_at_once(make_live: Any) -> None:
    live = make_live()
    live.server.stop()
    live.thread.join(15)  # half the drain time
    assert not live.thread.is_alive()


def test_a_second_signal_waits_no_longer(make_live: Any) -> None:
    live = make_live()
    with ThreadPoolExecutor() as pool:
        stream = pool.submit(live.post, {"stream": True}, X_Isogloss_Do="endless")
        _until(lambda: len(live.web.fake.calls) == 1)
        live.server.stop()
        live.server.stop()
        assert stream.result(15).events[-1] == "[DONE]"
    live.thread.join(15)
    assert not live.thread.is_alive()
