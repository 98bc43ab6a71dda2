"""The thread that owns the model, and the way in and out of it.

Callers live in asyncio loops. What they want goes into an inbox; what a step tells goes back in
one call per loop. The thread sleeps while there is nothing to do.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import threading
from collections import defaultdict
from dataclasses import dataclass

import torch

from isogloss.engine.api import EngineFailure, EngineOverloaded, EngineStatus, GenerationRequest
from isogloss.engine.torch.core import EngineCore, Parcel
from isogloss.engine.torch.jobs import Job
from isogloss.engine.torch.stream import Command, JobStream

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepperSettings:
    """What the stepper needs to know beside the core."""

    max_waiting: int
    """Requests that may wait to be started."""
    threads: int
    """Threads that one operation of torch may use."""
    eos: frozenset[int]


class Stepper:
    """Implements `TokenSource` over an engine core that runs in a thread of its own."""

    def __init__(self, core: EngineCore, settings: StepperSettings) -> None:
        self._core = core
        self._settings = settings
        self._inbox: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._arrivals = itertools.count()
        self._lock = threading.Lock()
        self._stopped = False
        self._streams: dict[Job, JobStream] = {}
        self._unstarted: set[Job] = set()
        self._thread = threading.Thread(target=self._run, name="isogloss-engine", daemon=True)

    # -- for callers, from any thread --

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End running requests with EngineFailure and wait for the thread. Idempotent."""
        with self._lock:
            self._stopped = True
        self._inbox.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def open(self, request: GenerationRequest) -> JobStream:
        """Queue a request; needs a running asyncio loop, where its events will arrive."""
        job = Job(request, next(self._arrivals), self._settings.eos)
        stream = JobStream(job, asyncio.get_running_loop(), self._inbox.put)
        with self._lock:
            if self._stopped:
                raise EngineFailure("the engine is stopped")
            if len(self._unstarted) >= self._settings.max_waiting:
                raise EngineOverloaded(f"{self._settings.max_waiting} requests are waiting")
            self._unstarted.add(job)
            self._streams[job] = stream
            self._inbox.put(lambda core: core.add(job))
        return stream

    def status(self) -> EngineStatus:
        """A snapshot."""
        counters = self._core.counters
        return EngineStatus(
            ready=self._thread.is_alive() and not self._stopped,
            running=counters.running,
            waiting=len(self._unstarted),
            kv_cache_usage=counters.usage,
            prompt_tokens=counters.prompt_tokens,
            generated_tokens=counters.generated_tokens,
        )

    # -- in the thread --

    def _run(self) -> None:
        # Set here, because OpenMP keeps this number per thread.
        torch.set_num_threads(self._settings.threads)
        try:
            while self._turn():
                pass
        finally:
            self._abandon()

    def _turn(self) -> bool:
        """Do what the inbox says, then one step. False when it says to stop."""
        try:
            if not self._obey_inbox():
                return False
            if self._core.busy:
                self._core.step()
        except Exception:
            # Whatever is broken, callers must not wait for it forever.
            log.exception("the engine's bookkeeping failed; it starts anew")
            self._core.reset("the engine failed")
        self._flush()
        return True

    def _obey_inbox(self) -> bool:
        if not self._core.busy and not self._obey(self._inbox.get()):
            return False
        while not self._inbox.empty():
            if not self._obey(self._inbox.get()):
                return False
        return True

    def _obey(self, command: Command | None) -> bool:
        if command is not None:
            command(self._core)
        return command is not None

    def _flush(self) -> None:
        """Send what was told, one call per loop."""
        outbox, self._core.outbox = self._core.outbox, {}
        with self._lock:
            deliveries = [(self._streams[job], parcel) for job, parcel in outbox.items()]
            for job, parcel in outbox.items():
                if parcel.last:
                    del self._streams[job]
                if parcel.last or job.started:
                    self._unstarted.discard(job)
        for stream in _post(deliveries):
            stream.close()

    def _abandon(self) -> None:
        """Nobody steps any more: end all requests."""
        with self._lock:
            self._stopped = True
            streams = list(self._streams.values())
            self._streams.clear()
            self._unstarted.clear()
        end = Parcel(failure=EngineFailure("the engine was stopped"), last=True)
        _post([(stream, end) for stream in streams])


def _post(deliveries: list[tuple[JobStream, Parcel]]) -> list[JobStream]:
    """Deliver in the loops of the streams. Returns the streams whose loop is closed."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[tuple[JobStream, Parcel]]]
    by_loop = defaultdict(list)
    for stream, parcel in deliveries:
        by_loop[stream.loop].append((stream, parcel))
    orphans: list[JobStream] = []
    for loop, parts in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver, parts)
        except RuntimeError:  # the loop is closed
            orphans += [stream for stream, _ in parts]
    return orphans


def _deliver(parts: list[tuple[JobStream, Parcel]]) -> None:
    for stream, parcel in parts:
        stream.deliver(parcel)
