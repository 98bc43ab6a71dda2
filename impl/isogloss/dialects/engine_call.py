"""One call on the engine: the requests of all its prompts, as one stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager

from isogloss_spec.faults import Fault

from isogloss.dialects.guides import Guided
from isogloss.engine.api import (
    Engine,
    EngineFailure,
    EngineOverloaded,
    EngineRefused,
    Event,
    GenerationRequest,
    GuideError,
)

RETRY_AFTER = 1
"""Seconds after which a new try makes sense when the engine is full: places become free at every step."""

_IN_FLIGHT = 64
"""Prompts of one call that are in the engine at the same time, so that no call fills its queue alone."""

_AHEAD = 8
"""Events that may wait for the reader: few, so that a slow reader slows the engine down."""


async def run(
    engine: Engine, requests: Sequence[GenerationRequest], guided: Guided | None = None
) -> AsyncGenerator[tuple[int, Event], None]:
    """Events of all requests, each with its request's position; those of one request keep their order.

    `guided` is where their guide comes from. Raises Fault `engine_refused`, `overloaded`, `engine_failure` or that of
    the guide; the first ends the whole call. Closing the generator aborts what still runs.
    """
    events = _alone(engine, requests[0]) if len(requests) == 1 else _merged(engine, requests)
    with _as_faults(guided):
        async with aclosing(events):
            async for item in events:
                yield item


@contextmanager
def _as_faults(guided: Guided | None) -> Iterator[None]:
    try:
        yield
    except EngineRefused as error:
        if guided is not None and isinstance(error, GuideError):
            raise guided.refusal(error) from error
        raise Fault("engine_refused") from error
    except EngineOverloaded as error:
        raise Fault("overloaded", values={"retry_after": RETRY_AFTER}) from error
    except EngineFailure as error:
        raise Fault("engine_failure") from error


async def _alone(engine: Engine, request: GenerationRequest) -> AsyncGenerator[tuple[int, Event], None]:
    async with aclosing(engine.generate(request)) as events:
        async for event in events:
            yield 0, event


async def _merged(engine: Engine, requests: Sequence[GenerationRequest]) -> AsyncGenerator[tuple[int, Event], None]:
    queue: asyncio.Queue[tuple[int, Event | Exception | None]] = asyncio.Queue(_AHEAD)
    places = asyncio.Semaphore(_IN_FLIGHT)
    pumps = [
        asyncio.create_task(_pump(engine, request, position, places, queue))
        for position, request in enumerate(requests)
    ]
    try:
        async with aclosing(_until_ended(queue, len(pumps))) as items:
            async for item in items:
                yield item
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(
    engine: Engine,
    request: GenerationRequest,
    position: int,
    places: asyncio.Semaphore,
    queue: asyncio.Queue[tuple[int, Event | Exception | None]],
) -> None:
    try:
        async with places, aclosing(engine.generate(request)) as events:
            async for event in events:
                await queue.put((position, event))
                await asyncio.sleep(0)  # an engine that is never late must not keep the other prompts from theirs
    except Exception as error:  # whatever it is, it belongs to the reader of the merged stream
        await queue.put((position, error))
    else:
        await queue.put((position, None))


async def _until_ended(
    queue: asyncio.Queue[tuple[int, Event | Exception | None]], running: int
) -> AsyncGenerator[tuple[int, Event], None]:
    while running:
        position, item = await queue.get()
        if item is None:
            running -= 1
        elif isinstance(item, Exception):
            raise item
        else:
            yield position, item
