"""One step of the engine, without threads: plan, compute, sample, tell.

Everything that is told goes to an outbox, which the stepper empties after each step.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

import torch

from isogloss.engine.api import EngineError, EngineFailure, GuideError
from isogloss.engine.tokens import Admitted, PromptScored, Sampled, TokenEvent
from isogloss.engine.torch.blocks import BlockPool
from isogloss.engine.torch.executor import Executor
from isogloss.engine.torch.jobs import Choice, Job, StepPlan, Work
from isogloss.engine.torch.sampler import Pick, sample
from isogloss.engine.torch.scheduler import Limits, Scheduler
from isogloss.engine.torch.scores import score_rows
from isogloss.engine.torch.searches import Progress, Searches

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Parcel:
    """What one step tells about one request."""

    events: list[TokenEvent] = field(default_factory=list)
    started_at: float = 0.0
    """When the step began, by `time.perf_counter`."""
    sampled_at: float = 0.0
    searched: bool = False
    """Whether a beam search went one token further."""
    batch_size: int = 0
    """Sequences that shared the step."""
    failure: EngineError | None = None
    last: bool = False
    """Nothing more will be told about the request."""


@dataclass(slots=True)
class Counters:
    """Totals since the start. Written by one thread, read by any."""

    running: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    usage: float = 0.0


class EngineCore:
    """Scheduler, executor and sampler put together. Used by one thread."""

    def __init__(self, executor: Executor, limits: Limits) -> None:
        self._executor = executor
        self._limits = limits
        self._scheduler = self._fresh_scheduler()
        self._searches = Searches(self._scheduler)
        self._jobs: dict[Job, None] = {}
        self.outbox: dict[Job, Parcel] = {}
        self.counters = Counters()

    def _fresh_scheduler(self) -> Scheduler:
        pool = BlockPool(self._executor.block_count)
        return Scheduler(pool, self._executor.block_size, self._limits)

    @property
    def busy(self) -> bool:
        """Whether a step would find something to do."""
        return self._scheduler.busy

    @property
    def pool(self) -> BlockPool:
        """Blocks of the KV cache."""
        return self._scheduler.pool

    # -- commands --

    def add(self, job: Job) -> None:
        """Take in a request."""
        self._jobs[job] = None
        self._scheduler.add(job)

    def end(self, job: Job, index: int) -> None:
        """Make no more tokens for one choice. Unknown and ended choices are fine."""
        if job not in self._jobs:
            return
        job.ended.add(index)
        for choice in [c for c in job.choices if c.index == index and not c.waiting_forks]:
            self._scheduler.remove(choice)
        self._settle(job)

    def abort(self, job: Job) -> None:
        """Forget a request. Unknown and finished requests are fine."""
        if job in self._jobs:
            for choice in job.choices.copy():
                self._scheduler.remove(choice)
            self._settle(job)

    def fail(self, jobs: list[Job], failure: EngineError) -> None:
        """End requests with a failure; what they computed is not trusted."""
        for job in jobs:
            if job in self._jobs:
                for choice in job.choices:
                    choice.trusted = False
                self._parcel(job).failure = failure
                self.abort(job)

    def reset(self, reason: str) -> None:
        """End all requests and begin anew with an empty cache, whatever state things are in."""
        for job in self._jobs:
            parcel = self._parcel(job)
            parcel.failure, parcel.last = EngineFailure(reason), True
        self._jobs.clear()
        touched = self._scheduler.pool.touched
        self._scheduler = self._fresh_scheduler()
        self._searches = Searches(self._scheduler)
        self._executor.clear_blocks(touched)
        self._count()

    def _settle(self, job: Job) -> None:
        if not job.choices:
            del self._jobs[job]
            self._searches.forget(job)
            self._parcel(job).last = True
            self._count()

    def _parcel(self, job: Job) -> Parcel:
        return self.outbox.setdefault(job, Parcel())

    # -- the step --

    def step(self) -> None:
        """Plan, compute, sample, tell. A failure to compute ends the requests of the batch."""
        started_at = time.perf_counter()
        plan = self._scheduler.plan()
        for job, cached_tokens in plan.started:
            self._parcel(job).events.append(Admitted(cached_tokens))
            self.counters.prompt_tokens += len(job.request.prompt)
        try:
            self._compute(plan)
        except Exception:
            # A model can fail in any way there is; the requests of other steps must not suffer.
            log.exception("a step of %d sequences failed", len(plan.work))
            self.fail(list(dict.fromkeys(w.choice.job for w in plan.work)), EngineFailure("a step failed"))
        self._stamp(started_at, len(plan.work))
        self._count()

    def _compute(self, plan: StepPlan) -> None:
        self._clean_blocks(plan)
        self._encode_media(plan)
        if not plan.work:
            return
        logits = self._executor.forward([w.span for w in plan.work])
        choices, rows = self._advance(plan, logits)
        if choices:
            everything = rows == list(range(len(logits)))
            picks = sample(logits if everything else logits[rows], [choice.sampler for choice in choices])
            self._tell(choices, picks)
        for progress in self._searches.step():
            self._tell_search(progress)

    def _clean_blocks(self, plan: StepPlan) -> None:
        unclean = self._scheduler.pool.take_unclean()
        if unclean:
            self._executor.clear_blocks(unclean)
        for source, target in plan.copies:
            self._executor.copy_block(source, target)

    def _encode_media(self, plan: StepPlan) -> None:
        """Compute the media that this step needs. Requests whose media break the model end, and leave the step."""
        for work in plan.work:
            job, first = work.choice.job, work.choice.computed
            if job.media is None or job not in self._jobs:
                continue
            try:
                job.media.compute(first, first + work.count, self._executor.encode)
            except Exception:
                # What a tower may raise is not written down.
                log.exception("the media of a request could not be computed")
                self.fail([job], EngineFailure("the media could not be computed"))
                plan.work = [rest for rest in plan.work if rest.choice.job is not job]

    def _advance(self, plan: StepPlan, logits: torch.Tensor) -> tuple[list[Choice], list[int]]:
        """Choices that get a token now, most urgent first, and their rows of logits."""
        targets: list[tuple[Choice, int]] = []
        end = 0
        for work in plan.work:
            end += work.wanted
            choice = work.choice
            if choice.job.prompt_scores is not None:
                self._score_prompt(work, logits[end - work.wanted : end])
            self._scheduler.advance(work)
            if choice.job.media is not None:
                choice.job.media.release(choice.computed)
            if choice.remaining == 0 and choice.job.request.beams:
                self._searches.take(choice, logits[end - 1])
            elif choice.remaining == 0:
                targets += [(choice, end - 1)]
                targets += [(twin, end - 1) for twin in self._scheduler.fork(choice)]
        targets = self._drop_ended(targets)
        return [choice for choice, _ in targets], [row for _, row in targets]

    def _drop_ended(self, targets: list[tuple[Choice, int]]) -> list[tuple[Choice, int]]:
        kept = []
        for choice, row in sorted(targets, key=lambda target: target[0].urgency):
            if choice.index in choice.job.ended:
                self._scheduler.remove(choice)
                self._settle(choice.job)
            else:
                kept.append((choice, row))
        return kept

    def _score_prompt(self, work: Work, logits: torch.Tensor) -> None:
        """The row of each position scores the token after it."""
        job, choice = work.choice.job, work.choice
        scores = job.prompt_scores
        prompt = job.request.prompt
        assert scores is not None
        assert job.request.prompt_logprobs is not None
        # After a preemption the first rows come a second time.
        skip = len(scores) - 1 - choice.computed
        chosen = prompt[len(scores) : choice.computed + work.count + 1]
        if chosen:
            counts = [job.request.prompt_logprobs] * len(chosen)
            scores += score_rows(logits[skip : skip + len(chosen)], chosen, counts)
        if work.count == choice.remaining:
            self._parcel(job).events.append(PromptScored(tuple(scores)))
            job.prompt_scores = None

    def _tell(self, choices: list[Choice], picks: list[Pick | None]) -> None:
        for choice, pick in zip(choices, picks, strict=True):
            if choice.job not in self._jobs:
                continue  # another choice of the same request has failed
            if pick is None:
                guide = choice.sampler.guide
                failed = guide is not None and guide.failed
                broken = EngineFailure("the model's output is not finite")
                self.fail([choice.job], GuideError("too_complex") if failed else broken)
                continue
            choice.trusted = True
            end = choice.append(pick.token)
            self.counters.generated_tokens += 1
            event = Sampled(choice.index, pick.token, pick.score, end)
            self._parcel(choice.job).events.append(event)
            if end is not None:
                self._scheduler.remove(choice)
                self._settle(choice.job)

    def _tell_search(self, progress: Progress) -> None:
        """Of a search only its result is told, all at once."""
        job, wanted = progress.job, progress.job.request.n
        self._parcel(job).searched = True
        self.counters.generated_tokens += progress.tokens
        if progress.tokens:
            return
        if len(progress.best) < wanted:
            self.fail([job], EngineFailure(f"the model's output allows no {wanted} sequences"))
            return
        for index, hypothesis in enumerate(progress.best):
            self._parcel(job).events += hypothesis.events(index)
        self.abort(job)

    def _stamp(self, started_at: float, batch_size: int) -> None:
        now = time.perf_counter()
        for parcel in self.outbox.values():
            parcel.started_at, parcel.sampled_at = started_at, now
            parcel.batch_size = batch_size

    def _count(self) -> None:
        self.counters.running = sum(job.started for job in self._jobs)
        self.counters.usage = self._scheduler.pool.usage
