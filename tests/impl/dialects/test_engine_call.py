"""Several requests as one stream: order, failure, and nothing left running."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from isogloss.dialects.engine_call import run
from isogloss.engine.api import Delta, EngineFailure, Finish, GenerationRequest, Started, Stopping
from isogloss_spec.faults import Fault


def requests(count):
    return [GenerationRequest(str(number), [number], Stopping(max_tokens=3)) for number in range(count)]


async def test_order_within_each_request(playing, spell):
    engine = playing(spell("abc"))
    async with aclosing(run(engine, requests(5))) as events:
        found = [(position, event) async for position, event in events]
    for number in range(5):
        own = [event for position, event in found if position == number]
        assert isinstance(own[0], Started)
        assert "".join(event.text for event in own[1:]) == "abc"
        assert own[-1].finish == Finish("length")
    assert sorted(engine.closed) == ["0", "1", "2", "3", "4"]


async def test_one_failure_ends_the_call_and_aborts_the_others(playing):
    def script(request):
        yield Started()
        if request.request_id == "1":
            yield EngineFailure("broken")
        for _ in range(1000):
            yield Delta(0, "a", (1,))

    engine = playing(script)
    with pytest.raises(Fault) as caught:
        async with aclosing(run(engine, requests(3))) as events:
            async for _ in events:
                pass
    assert caught.value.name == "engine_failure"
    assert sorted(engine.closed) == ["0", "1", "2"]


async def test_an_unexpected_error_reaches_the_reader_as_it_is(playing):
    engine = playing(lambda _: [Started(), ZeroDivisionError()])
    with pytest.raises(ZeroDivisionError):
        async with aclosing(run(engine, requests(2))) as events:
            async for _ in events:
                pass


class Hanging:
    """An engine whose requests never end by themselves."""

    def __init__(self, awaited=0):
        self.open = 0
        self.most = 0
        self.awaited = awaited
        self.reached = asyncio.Event()

    async def generate(self, request):
        self.open += 1
        self.most = max(self.most, self.open)
        if self.open == self.awaited:
            self.reached.set()
        try:
            yield Started()
            await asyncio.Event().wait()
        finally:
            self.open -= 1


@pytest.mark.parametrize("count", [1, 4])
async def test_cancelling_the_reader_closes_every_generator(count):
    engine = Hanging(count)

    async def read():
        async with aclosing(run(engine, requests(count))) as events:
            async for _ in events:
                pass

    reader = asyncio.create_task(read())
    await engine.reached.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert engine.open == 0


async def test_a_call_has_a_bounded_number_of_prompts_in_the_engine(playing):
    engine = Hanging()
    events = run(engine, requests(200))
    for _ in range(64):
        await anext(events)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(events), 0.05)
    assert engine.most == 64
    await events.aclose()
    assert engine.open == 0


async def test_a_reader_that_stops_reading_stops_the_engine(playing):
    made = []

    def script(_):
        for number in range(1000):
            made.append(number)
            yield Delta(0, "a", (1,))

    async with aclosing(run(playing(script), requests(2))) as events:
        await anext(events)
        await asyncio.sleep(0.02)
        assert len(made) < 20
