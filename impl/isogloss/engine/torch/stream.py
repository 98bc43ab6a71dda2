"""The caller's end of one request: events in, times measured, commands out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from isogloss.engine.api import Timing
from isogloss.engine.tokens import Admitted, Sampled, TokenEvent
from isogloss.engine.torch.core import EngineCore, Parcel
from isogloss.engine.torch.jobs import Job

Command = Callable[[EngineCore], None]
"""What the thread that owns the engine should do next."""


@dataclass(slots=True)
class Clock:
    """Times of one choice."""

    first: float = 0.0
    last: float = 0.0
    decode: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    batch_sizes: list[int] = field(default_factory=list)

    def tick(self, began: float, now: float, batch_size: int) -> None:
        """Note one token of the step that began then."""
        if self.batch_sizes:
            self.decode.append(now - self.last)
            self.waits.append(max(0.0, began - self.last))
        else:
            self.first = now
        self.last = now
        self.batch_sizes.append(batch_size)


class JobStream:
    """Implements `TokenStream`. Used in one asyncio loop; `deliver` is called there too."""

    def __init__(self, job: Job, loop: asyncio.AbstractEventLoop, send: Callable[[Command], None]) -> None:
        self._job = job
        self._send = send
        self._parcels: asyncio.Queue[Parcel] = asyncio.Queue()
        self._finished = False
        self._started_at = 0.0
        # The steps of a beam search are those of all its sequences.
        self._clocks = [Clock()] * job.request.n if job.request.beams else [Clock() for _ in range(job.request.n)]
        self._tokens = [0] * job.request.n
        self.loop = loop

    def deliver(self, parcel: Parcel) -> None:
        """Take in what a step told."""
        self._parcels.put_nowait(parcel)

    def __aiter__(self) -> AsyncIterator[list[TokenEvent]]:
        return self

    async def __anext__(self) -> list[TokenEvent]:
        """Raises EngineFailure when the engine broke."""
        while not self._finished:
            parcel = await self._parcels.get()
            self._finished = parcel.last
            self._measure(parcel)
            if parcel.failure is not None:
                raise parcel.failure
            if parcel.events:
                return parcel.events
        raise StopAsyncIteration

    def _measure(self, parcel: Parcel) -> None:
        if parcel.searched:
            self._clocks[0].tick(parcel.started_at, parcel.sampled_at, parcel.batch_size)
        for event in parcel.events:
            if isinstance(event, Sampled):
                self._tokens[event.choice] += 1
                if not parcel.searched:
                    self._clocks[event.choice].tick(parcel.started_at, parcel.sampled_at, parcel.batch_size)
            elif isinstance(event, Admitted):
                self._started_at = parcel.started_at

    def timing(self, choice: int) -> Timing:
        """Times of the tokens that the stream has handed out."""
        clock, tokens = self._clocks[choice], self._tokens[choice]
        return Timing(
            queue=max(0.0, self._started_at - self._job.arrived),
            prefill=max(0.0, clock.first - self._started_at),
            decode=tuple(clock.decode[: max(0, tokens - 1)]),
            waits=tuple(clock.waits[: max(0, tokens - 1)]),
            batch_sizes=tuple(clock.batch_sizes[:tokens]),
        )

    def end(self, choice: int) -> None:
        """Make no more tokens for this choice."""
        job = self._job
        self._send(lambda core: core.end(job, choice))

    def close(self) -> None:
        """Abort what still runs."""
        job = self._job
        self._send(lambda core: core.abort(job))
