"""Compiles guides off the event loop and off the step loop, within bounds of time, size and number."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import subprocess
import sys
import threading
import time
from collections import Counter, OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from isogloss.engine.api import EngineFailure, EngineOverloaded, Guide, GuideError
from isogloss.engine.guides import worker
from isogloss.engine.guides.matcher import ReadyGuide, Tokens
from isogloss.engine.guides.trial import compiled
from isogloss.engine.guides.vocabulary import Vocabulary

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompilerLimits:
    """What guides may take."""

    seconds: float = 2.0
    """For one guide, after which its worker is killed and the guide is too complex."""
    text: int = 256 * 1024
    """Characters of one guide."""
    workers: int = 2
    """Guides that are compiled at once; each worker is a process that starts when it is first needed."""
    waiting_seconds: float = 5.0
    """Work that may wait for the workers, by how long guides have taken lately."""
    cached: int = 256
    """Guides that are kept compiled."""
    cached_text: int = 1024 * 1024
    """Characters of all of them. Each may take a few hundred bytes of memory."""
    start_seconds: float = 60.0
    """For a worker to read its vocabulary."""


DEFAULTS = CompilerLimits()


class GuideCompiler:
    """Guides of one vocabulary. Safe to use from several threads and event loops."""

    def __init__(self, vocabulary: Vocabulary, limits: CompilerLimits = DEFAULTS) -> None:
        self._vocabulary = vocabulary
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.workers, thread_name_prefix="isogloss-guides")
        self._lock = threading.Lock()
        self._local = threading.local()
        self._workers: list[_Worker] = []
        self._closed = False
        self._futures: OrderedDict[Guide, Future[ReadyGuide | GuideError]] = OrderedDict()
        """Least recently used first. Flaws are kept too: a bad guide often comes again."""
        self._callers: Counter[Guide] = Counter()
        """How many wait for each guide."""
        self._pace = 0.05
        """Seconds that a guide takes lately."""

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self._vocabulary)

    def load(self) -> None:
        """Read the vocabulary now rather than for the first guide. Raises ValueError if it cannot be used."""
        assert self._tokens

    async def ready(self, guide: Guide) -> ReadyGuide:
        """The guide, compiled. Raises GuideError, EngineOverloaded, or EngineFailure if workers cannot start."""
        future = self._future(guide)
        try:
            # Shielded, since others may wait for the same guide.
            found = await asyncio.shield(asyncio.wrap_future(future))
        except asyncio.CancelledError:
            if future.cancelled():
                raise EngineFailure("the engine was stopped") from None
            raise
        finally:
            self._leave(guide, future)
        if isinstance(found, GuideError):
            raise GuideError(found.flaw, whitespace=found.whitespace)
        return found

    def close(self) -> None:
        """End the workers. Guides that are being compiled fail."""
        with self._lock:
            self._closed = True
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in self._workers:
                process.kill()

    def _future(self, guide: Guide) -> Future[ReadyGuide | GuideError]:
        if _size(guide) > self._limits.text:
            raise GuideError("too_complex")
        with self._lock:
            if self._closed:
                raise EngineFailure("the engine was stopped")
            future = self._futures.get(guide)
            if future is None:
                self._make_room()
                future = self._futures[guide] = self._pool.submit(self._compile, guide)
            self._futures.move_to_end(guide)
            self._callers[guide] += 1
        return future

    def _leave(self, guide: Guide, future: Future[ReadyGuide | GuideError]) -> None:
        """One caller fewer; nobody's guide is not compiled any more."""
        with self._lock:
            self._callers[guide] -= 1
            if self._callers[guide] > 0:
                return
            del self._callers[guide]
            if not future.done() and future.cancel():
                del self._futures[guide]

    def _make_room(self) -> None:
        pending = sum(not future.done() for future in self._futures.values())
        # At least as many as there are workers, however slow guides have been.
        busy = pending >= self._limits.workers
        if busy and pending * self._pace / self._limits.workers > self._limits.waiting_seconds:
            raise EngineOverloaded("too many guides are waiting to be compiled")
        text = sum(map(_size, self._futures))
        for guide in [guide for guide, future in self._futures.items() if future.done()]:
            if text <= self._limits.cached_text and len(self._futures) < self._limits.cached:
                break
            text -= _size(guide)
            del self._futures[guide]

    # -- in a thread of the pool --

    def _compile(self, guide: Guide) -> ReadyGuide | GuideError:
        begun = time.monotonic()
        try:
            return self._compiled(guide)
        finally:
            self._pace += 0.5 * (time.monotonic() - begun - self._pace)

    def _compiled(self, guide: Guide) -> ReadyGuide | GuideError:
        try:
            answer = self._worker().ask(guide, self._limits.seconds)
        except (EOFError, OSError) as error:
            self._local.worker = None
            with self._lock:
                self._futures.pop(guide, None)  # by no fault of the guide
            raise EngineFailure("guides cannot be compiled now") from error
        if answer is None:
            log.warning("a guide of %d characters has ended its worker", _size(guide))
            self._local.worker = None
            return GuideError("too_complex")
        if "flaw" in answer:
            return GuideError(answer["flaw"], whitespace=answer["whitespace"])
        start = compiled(self._tokens.tokenizer, answer["grammar"])
        if start.is_error():
            return GuideError("unsupported")
        told = {member.name: getattr(guide, member.name) for member in fields(Guide)}
        return ReadyGuide(**told, start=start, tokens=self._tokens)

    def _worker(self) -> _Worker:
        """This thread's worker."""
        process: _Worker | None = getattr(self._local, "worker", None)
        if process is None or not process.alive:
            with self._lock:
                if self._closed:
                    raise EngineFailure("the engine was stopped")
                process = _Worker()
                self._workers = [*(other for other in self._workers if other.alive), process]
            process.start(self._vocabulary, self._limits.start_seconds)
            self._local.worker = process
        return process


class _Worker:
    """A process of `worker`, and the way to it."""

    def __init__(self) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-m", worker.__name__, str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def start(self, vocabulary: Vocabulary, seconds: float) -> None:
        """Send what it works with. Raises EOFError or OSError if it does not become ready in time."""
        self._connection.send(vocabulary)
        if not self._connection.poll(seconds):
            self._give_up()
            raise TimeoutError("a worker for guides does not start")
        self._connection.recv_bytes()

    def ask(self, guide: Guide, seconds: float) -> dict[str, Any] | None:
        """What it says about a guide; None if that takes too long or ends it, and then it is gone."""
        try:
            self._connection.send_bytes(worker.encode(guide))
            if self._connection.poll(seconds):
                answer: dict[str, Any] = json.loads(self._connection.recv_bytes())
                return answer
        except (EOFError, ConnectionError):
            pass
        self._give_up()
        return None

    def kill(self) -> None:
        """End it, from any thread. The connection is left to the thread that may be listening to it."""
        self._process.kill()
        self._process.wait()

    def _give_up(self) -> None:
        self.kill()
        self._connection.close()


def _size(guide: Guide) -> int:
    own = len(guide.text) + sum(map(len, guide.choices)) + len(guide.choices) + len(guide.whitespace or "")
    return own + sum(map(_size, guide.parts))
