"""A request while it is worked on, and its choices. Plain state; the scheduler moves it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from isogloss.engine.api import GenerationRequest
from isogloss.engine.guides.matcher import GuideMatcher, matcher_of
from isogloss.engine.tokens import RawScore, TokenEnd
from isogloss.engine.torch.blocks import PrefixKeys
from isogloss.engine.torch.executor import Span
from isogloss.engine.torch.multimodal.job_media import JobMedia
from isogloss.engine.torch.multimodal.placed import TorchMedia
from isogloss.engine.torch.sampler import SamplerRow, sampler_row


@dataclass(slots=True, eq=False)
class Job:
    """One request. It starts with one choice, which prefills the prompt for all."""

    request: GenerationRequest
    arrival: int
    """Counts up from request to request."""
    eos: frozenset[int] = frozenset()
    arrived: float = field(default_factory=time.perf_counter)
    started: bool = False
    choices: list[Choice] = field(default_factory=list)
    """Those that still run or wait to be computed again."""
    ended: set[int] = field(default_factory=set)
    """Choices that the caller ended, perhaps before they began."""
    prompt_scores: list[RawScore | None] | None = None
    """Scores so far, until they are complete and handed on."""
    media: JobMedia | None = None
    """What takes the place of tokens; None if the prompt is text."""

    def __post_init__(self) -> None:
        if self.request.prompt_logprobs is not None:
            self.prompt_scores = [None]
        if isinstance(self.request.media, TorchMedia) and self.request.media.placed:
            self.media = JobMedia(self.request.media)

    def prefix_keys(self, block_size: int) -> PrefixKeys:
        """Keys of its blocks, which stand for all that changes the model's computation."""
        adapter = (self.request.adapter or "").encode()
        return PrefixKeys(block_size, adapter, None if self.media is None else self.media.contents)

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end a choice."""
        stopping = self.request.stopping
        return stopping.stop_token_ids | (frozenset() if stopping.ignore_eos else self.eos)

    @property
    def sequences(self) -> int:
        """How many are computed side by side once the prompt is."""
        return self.request.beams or self.request.n

    def end_by(self, token: int, generated: int) -> TokenEnd | None:
        """Whether a choice ends with this token, which is its number `generated`."""
        stopping = self.request.stopping
        if token in self.eos and not stopping.ignore_eos:
            return TokenEnd("stop")
        if token in stopping.stop_token_ids:
            return TokenEnd("stop", token)
        if generated >= stopping.max_tokens:
            return TokenEnd("length")
        return None


@dataclass(slots=True, eq=False)
class Choice:
    """One sequence of tokens: the prompt and what was generated after it."""

    job: Job
    index: int
    tokens: list[int]
    keys: PrefixKeys
    sampler: SamplerRow
    table: list[int] = field(default_factory=list)
    computed: int = 0
    """Tokens whose keys and values are in the cache."""
    found_blocks: int = 0
    """Blocks at the start of the table that another choice has computed."""
    waiting_forks: tuple[int, ...] = ()
    """Choices that will branch off when the prompt is computed."""
    trusted: bool = False
    """Whether finite logits have shown that its blocks hold finite numbers."""

    @property
    def urgency(self) -> tuple[int, int, int]:
        """Sorts: less is served first and preempted last."""
        return self.job.request.priority, self.job.arrival, self.index

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next can be sampled; 1 while decoding."""
        return len(self.tokens) - self.computed

    @property
    def seats(self) -> int:
        """How many running sequences this one is, or will be soon."""
        return 1 + len(self.waiting_forks)

    @property
    def generated(self) -> int:
        """Tokens of the output."""
        return len(self.tokens) - len(self.job.request.prompt)

    @property
    def output(self) -> list[int]:
        """What was generated."""
        return self.tokens[len(self.job.request.prompt) :]

    def append(self, token: int) -> TokenEnd | None:
        """Add a sampled token; says whether it ends the choice."""
        self.tokens.append(token)
        if self.sampler.history is not None:
            self.sampler.history.add(token)
        if self.sampler.banned and self.generated >= self.job.request.stopping.min_tokens:
            self.sampler.banned = ()
        end = self.job.end_by(token, self.generated)
        return end if self.sampler.guide is None else self._end_by_guide(self.sampler.guide, token, end)

    def _end_by_guide(self, guide: GuideMatcher, token: int, end: TokenEnd | None) -> TokenEnd | None:
        """What the guide makes of a token and of the end that it would be without one."""
        if token in self.job.eos:
            return TokenEnd("stop")
        if end is not None and end.reason == "stop":
            return end
        guide.accept(token)
        complete = guide.finished() if end is not None else guide.complete
        return TokenEnd("stop", completes=True) if complete else end

    def fork(self, index: int) -> Choice:
        """A choice of the same job that shares everything computed so far."""
        twin = first_choice(self.job, self.keys.fork(), index)
        twin.table = self.table.copy()
        twin.computed = self.computed
        return twin

    def branch(self, index: int) -> Choice:
        """A fork that has generated what this choice has."""
        twin = self.fork(index)
        twin.tokens = self.tokens.copy()
        twin.sampler.banned = self.sampler.banned
        twin.sampler.history = None if self.sampler.history is None else self.sampler.history.copy()
        return twin


def first_choice(job: Job, keys: PrefixKeys, index: int = 0) -> Choice:
    """A choice that has generated nothing yet."""
    request = job.request
    row = sampler_row(request.sampling, request.prompt, index, request.logprobs)
    if request.stopping.min_tokens > 0:
        row.banned = tuple(sorted(job.end_ids))
    row.guide = matcher_of(request.guide, job.eos if request.stopping.ignore_eos else ())
    return Choice(job, index, list(request.prompt), keys, row)


@dataclass(slots=True)
class Work:
    """What one step computes for one choice."""

    choice: Choice
    count: int
    """Tokens to compute, from `choice.computed` on."""
    wanted: int
    """Rows of logits to get, counted from the last."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens to compute."""
        first = self.choice.computed
        return self.choice.tokens[first : first + self.count]

    @property
    def span(self) -> Span:
        """The same as an executor takes it."""
        choice = self.choice
        span = Span(self.tokens, choice.computed, choice.table, self.wanted, choice.job.request.adapter)
        return span if choice.job.media is None else choice.job.media.onto(span)


@dataclass(slots=True)
class StepPlan:
    """One step of the engine."""

    work: list[Work] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    """Blocks to copy first, in order: source, target."""
    started: list[tuple[Job, int]] = field(default_factory=list)
    """Requests that leave the queue, with their cached prompt tokens."""
    preempted: int = 0
