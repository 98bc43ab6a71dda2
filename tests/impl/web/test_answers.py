"""Whole answers, streams, failures, ids, and what the log says."""

from __future__ import annotations

import json
import logging
import re
import time
from typing import Any

import pytest

STREAM = {"stream": True}


def test_whole_answer(live: Any) -> None:
    answer = live.post()
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["id"] == "cmpl-1"
    assert answer.headers["x-from-handler"] == "yes"


def test_stream(live: Any) -> None:
    answer = live.post(STREAM)
    assert answer.events == ['{"number":0}', '{"number":1}', '{"number":2}', "[DONE]"]
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-from-handler"] == "yes"
    assert answer.headers["transfer-encoding"] == "chunked"


def test_stream_without_events_has_its_terminator(live: Any) -> None:
    assert live.post(STREAM, X_Isogloss_Do="nothing").events == ["[DONE]"]


def test_the_connection_is_kept_after_a_stream(live: Any, wire: Any) -> None:
    with live.connect() as sock:
        for _ in range(2):
            sock.sendall(wire.post(STREAM))
            assert wire.read(sock).events[-1] == "[DONE]"


def test_first_fault_is_an_answer_of_its_own(live: Any) -> None:
    answer = live.post(STREAM, X_Isogloss_Do="fault-first")
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["message"] == "The engine cannot serve this request."


@pytest.mark.parametrize("do", ["fault-late", "boom-late"])
def test_late_fault_is_one_event_before_the_terminator(live: Any, do: str) -> None:
    answer = live.post(STREAM, X_Isogloss_Do=do)
    assert answer.status == 200
    first, error, last = answer.events
    assert (first, last) == ('{"number":0}', "[DONE]")
    assert json.loads(error)["code"] == 500


def test_comments_keep_a_silent_stream_alive(make_live: Any) -> None:
    live = make_live(keepalive=0.06)
    events = live.post(STREAM, X_Isogloss_Do="quiet").events
    assert events[0] == '{"number":0}'
    assert set(events[1:-2]) == {": keepalive"}
    assert 2 <= len(events[1:-2]) <= 3
    assert events[-2:] == ['{"number":1}', "[DONE]"]


def test_a_stream_starts_with_a_comment_when_the_first_event_is_late(make_live: Any) -> None:
    live = make_live(keepalive=0.06)
    answer = live.post(STREAM, X_Isogloss_Do="quiet-then-fault")
    assert answer.status == 200
    assert answer.events[0] == ": keepalive"
    assert json.loads(answer.events[-2])["code"] == 500
    assert answer.events[-1] == "[DONE]"


def test_short_streams_get_no_comments(make_live: Any) -> None:
    live = make_live(keepalive=0.3)
    assert live.post(STREAM, X_Isogloss_Do="quiet").events == ['{"number":0}', '{"number":1}', "[DONE]"]


def test_an_unforeseen_exception_is_a_500_without_its_text(live: Any, wire: Any) -> None:
    answer = live.post(X_Isogloss_Do="boom")
    assert answer.status == 500
    assert answer.json["type"] == "InternalServerError"
    assert wire.secret.encode() not in answer.body


def test_retry_after_is_filled_in(live: Any) -> None:
    answer = live.post(X_Isogloss_Do="overloaded")
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"


def test_prompt_rules_run_between_measure_and_answer(make_live: Any) -> None:
    live = make_live()
    live.web.fake.prompt_tokens = 65
    answer = live.post()
    assert answer.status == 400
    assert live.web.fake.calls == []


def test_the_call_knows_its_request(make_live: Any) -> None:
    live = make_live(keys=("k1",))
    live.post(X_Request_Id="abc", X_Isogloss_Script="{}", Authorization="Bearer k1", X_Other="x")
    (call,) = live.web.fake.calls
    assert call.request_id == "abc"
    assert call.hints == {"x-isogloss-script": "{}"}
    assert call.eff["temperature"] == 1.0
    assert re.fullmatch("[0-9a-f]{8}", call.key)


@pytest.mark.parametrize("given", ["a", "A-b_c.9", "x" * 128])
def test_well_formed_request_ids_come_back(live: Any, given: str) -> None:
    for answer in (live.post(X_Request_Id=given), live.post(STREAM, X_Request_Id=given)):
        assert answer.headers["x-request-id"] == given
    for path in ("/", "/nope", "/metrics"):
        assert live.get(path, X_Request_Id=given).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a,b", "ä"])
def test_other_request_ids_are_replaced(live: Any, given: str) -> None:
    ids = {live.post(X_Request_Id=given).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", made) for made in ids)


def test_access_log(live: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    live.post(X_Request_Id="logged")
    live.get("/nope%0Aforged", X_Request_Id="unknown")
    deadline = time.monotonic() + 30
    while "id=unknown" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert re.fullmatch(
        r"request id=logged method=POST path=/nim/v1/completions status=200 ms=\d+\.\d key=- fault=-", lines[0]
    )
    assert "path='/nope%0Aforged' status=404" in lines[1]
    assert "\n" not in lines[1]


@pytest.mark.parametrize("body", [{}, STREAM])
def test_the_log_has_the_traceback_and_no_text_of_the_request(
    live: Any, wire: Any, caplog: pytest.LogCaptureFixture, body: dict[str, Any]
) -> None:
    caplog.set_level(logging.INFO)
    live.post(body | {"prompt": "private"}, X_Isogloss_Do="boom-late" if body else "boom", X_Request_Id="failed")
    assert "request id=failed failed" in caplog.text
    assert "builtins.RuntimeError" in caplog.text
    assert "raise RuntimeError" in caplog.text
    assert wire.secret not in caplog.text
    assert "private" not in caplog.text


def test_large_bodies_are_judged_too(live: Any) -> None:
    big = "x" * 100_000
    assert live.post({"prompt": big}).status == 200
    assert live.post({"prompt": big, "top_p": 7}).status == 422
