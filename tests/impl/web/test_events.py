"""The writer of event streams by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

import pytest
from isogloss.web.errors import RenderedError
from isogloss.web.events import EventStream
from isogloss.web.state import RequestState
from isogloss_api.runtime import Framing
from isogloss_spec import Fault

ERROR = RenderedError("engine_failure", 500, [], b'{"error":1}')


class BrokenError(Exception):
    pass


class Sink:
    """Takes what is sent, slowly if told so."""

    def __init__(self, delay: float = 0.0) -> None:
        self.messages: list[Any] = []
        self.delay = delay

    async def __call__(self, message: Any) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        self.messages.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def _stream(sink: Sink, terminator: str | None = "[DONE]", keepalive: float | None = None) -> EventStream:
    return EventStream(sink, RequestState("id", "/", {}, Fault("not_found"), "0" * 32), Framing(terminator, keepalive))


async def _ticks(count: int, pause: float) -> AsyncIterator[Any]:
    for number in range(count):
        await asyncio.sleep(pause)
        yield number


async def test_messages() -> None:
    sink = Sink()
    await _stream(sink).run(_ticks(2, 0), {"X-More": "1"})
    start, *bodies = sink.messages
    assert start["type"] == "http.response.start"
    assert (b"x-more", b"1") in start["headers"]
    assert [message["more_body"] for message in bodies] == [True, True, False]
    assert sink.body == b"data: 0\n\ndata: 1\n\ndata: [DONE]\n\n"


async def test_a_stream_without_terminator_just_ends() -> None:
    sink = Sink()
    await _stream(sink, terminator=None).run(_ticks(1, 0), {})
    assert sink.body == b"data: 0\n\n"
    assert sink.messages[-1]["more_body"] is False


async def test_comments_come_while_events_do() -> None:
    sink, begun = Sink(), monotonic()
    await _stream(sink, keepalive=0.1).run(_ticks(20, 0.015), {})
    assert 2 <= sink.body.count(b": keepalive") <= (monotonic() - begun) / 0.1


async def test_nothing_is_written_or_left_running_after_the_end() -> None:
    sink = Sink()
    await _stream(sink, keepalive=0.02).run(_ticks(1, 0), {})
    sent = len(sink.messages)
    await asyncio.sleep(0.05)
    assert len(sink.messages) == sent
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_comments_and_events_do_not_mix_when_the_reader_is_slow() -> None:
    sink = Sink(delay=0.03)
    await _stream(sink, keepalive=0.02).run(_ticks(4, 0.025), {})
    assert [message["type"] for message in sink.messages].count("http.response.start") == 1
    assert sink.messages[0]["type"] == "http.response.start"
    assert sink.messages[-1]["more_body"] is False
    assert all(part.startswith((b"data: ", b": keepalive")) for part in sink.body.split(b"\n\n") if part)


async def test_failing_a_started_stream() -> None:
    async def broken() -> AsyncIterator[Any]:
        yield 0
        raise BrokenError

    sink = Sink()
    stream = _stream(sink)
    with pytest.raises(BrokenError):
        await stream.run(broken(), {})
    assert stream.started
    await stream.fail(ERROR)
    assert sink.body == b'data: 0\n\ndata: {"error":1}\n\ndata: [DONE]\n\n'
    assert sink.messages[-1]["more_body"] is False


async def test_an_error_before_the_first_event_starts_nothing() -> None:
    async def broken() -> AsyncIterator[Any]:
        raise BrokenError
        yield

    sink = Sink()
    stream = _stream(sink)
    with pytest.raises(BrokenError):
        await stream.run(broken(), {})
    assert not stream.started
    assert sink.messages == []


async def test_an_iterator_without_aclose_will_do() -> None:
    class Plain:
        def __init__(self) -> None:
            self.left = 1

        def __aiter__(self) -> Plain:
            return self

        async def __anext__(self) -> int:
            self.left -= 1
            if self.left < 0:
                raise StopAsyncIteration
            return self.left

    sink = Sink()
    await _stream(sink).run(Plain(), {})
    assert sink.body == b"data: 0\n\ndata: [DONE]\n\n"


async def test_cancelling_closes_the_events_once() -> None:
    closed = 0

    async def events() -> AsyncIterator[Any]:
        nonlocal closed
        try:
            yield 0
            await asyncio.Event().wait()
        finally:
            closed += 1

    task = asyncio.create_task(_stream(Sink(), keepalive=5).run(events(), {}))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert closed == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}
