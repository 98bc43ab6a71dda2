"""The tokens of one scripted request, a step at a time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

from isogloss.engine.api import EngineFailure, Timing
from isogloss.engine.scripted.admission import Admission, Place
from isogloss.engine.scripted.script import Script
from isogloss.engine.scripted.search import FoundSequence
from isogloss.engine.scripted.sequence import ScriptedSequence
from isogloss.engine.tokens import Admitted, PromptScored, RawScore, TokenEvent

_STEPS_PER_TURN = 16
"""Steps without a delay before others on the event loop get their turn."""


@dataclass(slots=True)
class Totals:
    """What an engine has done since its start."""

    prompt_tokens: int = 0
    generated_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What a stream makes its tokens of."""

    sequences: Sequence[ScriptedSequence | FoundSequence]
    script: Script
    prompt_tokens: int
    prompt_scores: tuple[RawScore | None, ...] | None
    step: int | None = None
    """Tokens of a choice that are told together; None leaves it to the script."""


class ScriptedStream:
    """Makes tokens while it is read, and holds its place until it is closed or all choices end."""

    def __init__(self, work: Work, admission: Admission, place: Place, totals: Totals) -> None:
        self._work = work
        self._admission = admission
        self._place = place
        self._totals = totals
        self._live = list(work.sequences)
        self._made = 0
        self._halted = asyncio.Event()
        self._failure: EngineFailure | None = None
        self._arrived = time.perf_counter()
        self._started: float | None = None
        self._times: list[float] = []
        self._waits: list[float] = []
        self._batch_sizes: list[int] = []

    def __aiter__(self) -> ScriptedStream:
        return self

    async def __anext__(self) -> list[TokenEvent]:
        if self._started is None:
            return await self._start()
        asked = time.perf_counter()
        if not self._live:
            self.close()
        else:
            await self._pace()
        self._check()
        return self._step(asked)

    def end(self, choice: int) -> None:
        """Make no more tokens for this choice. Idempotent."""
        self._work.sequences[choice].ended = True
        self._sweep()

    def timing(self, choice: int) -> Timing:
        """Measured times of a choice so far."""
        made = self._work.sequences[choice].made
        if self._started is None or not made:
            return Timing()
        times = self._times[:made]
        return Timing(
            queue=self._started - self._arrived,
            prefill=times[0] - self._started,
            decode=tuple(after - before for before, after in itertools.pairwise(times)),
            waits=tuple(self._waits[1:made]),
            batch_sizes=tuple(self._batch_sizes[:made]),
        )

    def close(self) -> None:
        """Abort what still runs and free its place. Idempotent, callable at any time."""
        self._halted.set()
        self._admission.leave(self._place)

    def fail(self, failure: EngineFailure) -> None:
        """End the request with a failure, which its reader gets."""
        self._failure = failure
        self.close()

    async def _start(self) -> list[TokenEvent]:
        await self._place.settled.wait()
        self._check()
        self._started = time.perf_counter()
        self._totals.prompt_tokens += self._work.prompt_tokens
        events: list[TokenEvent] = [Admitted()]
        if self._work.prompt_scores is not None:
            events.append(PromptScored(self._work.prompt_scores))
        return events

    async def _pace(self) -> None:
        script = self._work.script
        delay = script.delay if self._made else script.first_delay
        if delay:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._halted.wait(), delay)
        elif self._made % _STEPS_PER_TURN == 0:
            await asyncio.sleep(0)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._halted.is_set():
            raise StopAsyncIteration
        if self._work.script.fail_after == self._made:
            raise EngineFailure("the script says that the engine fails here")

    def _step(self, asked: float) -> list[TokenEvent]:
        count = self._tokens_a_step()
        events: list[TokenEvent] = []
        for sequence in self._live:
            for _ in range(count):
                events.append(sequence.step())
                if sequence.ended:
                    break
        self._record(asked, count, len(events))
        return events

    def _tokens_a_step(self) -> int:
        script, step = self._work.script, self._work.step
        step = script.step if step is None else step
        return step if script.fail_after is None else min(step, script.fail_after - self._made)

    def _record(self, asked: float, count: int, made: int) -> None:
        self._made += count
        self._totals.generated_tokens += made
        self._waits += [asked - self._times[-1] if self._times else 0.0, *[0.0] * (count - 1)]
        self._times += [time.perf_counter()] * count
        self._batch_sizes += [self._admission.running_seqs] * count
        self._sweep()

    def _sweep(self) -> None:
        live = [sequence for sequence in self._live if not sequence.ended]
        ended = len(self._live) - len(live)
        self._live = live
        if ended and not self._place.left:
            self._admission.shrink(self._place, ended)
