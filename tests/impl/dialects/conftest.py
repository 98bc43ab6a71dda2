"""An engine that says what a test tells it, and callers for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable

import pytest
from isogloss.engine.api import (
    Delta,
    EngineStatus,
    Event,
    Finish,
    GenerationRequest,
    ModelCard,
    PromptScores,
    Started,
    TokenLogprob,
    TokenScore,
)
from isogloss.engine.scripted.vocabulary import VOCAB_SIZE, ByteTokenizer
from support.caller import Caller

Script = Callable[[GenerationRequest], Iterable[Event | Exception]]


def plain(text: str = "ok", *, cached: int = 0) -> Script:
    """A script: one token and one delta per character for every choice, then `length`."""

    def script(request: GenerationRequest) -> Iterable[Event]:
        yield Started(cached)
        if request.prompt_logprobs is not None:
            yield PromptScores((None, *(scored(token) for token in request.prompt[1:])))
        for place, char in enumerate(text, 1):
            finish = Finish("length") if place == len(text) else None
            for choice in range(request.n):
                scores = () if request.logprobs is None else (scored(ord(char)),)
                yield Delta(choice, char, (ord(char),), scores, finish)

    return script


def scored(token: int, logprob: float = -1.0) -> TokenScore:
    """A byte token with two alternatives, of which it is the second."""
    chosen = TokenLogprob(token, ByteTokenizer().token_text(token), logprob, 2)
    return TokenScore(chosen, (TokenLogprob(64, "@", logprob / 2, 1), chosen))


class FakeEngine:
    """Plays a script for each request; counts generators that were opened and closed."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or plain()
        self.requests: list[GenerationRequest] = []
        self.closed: list[str] = []
        self.snapshot = EngineStatus(ready=True, running=0, waiting=0)
        self.card = ModelCard("fake", 64, VOCAB_SIZE, layers=2, hidden_size=8, created=7, owner="us")
        self.tokenizer = ByteTokenizer()
        self.features: frozenset[str] = frozenset()

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def status(self) -> EngineStatus:
        return self.snapshot

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        self.requests.append(request)
        try:
            for event in self.script(request):
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed.append(request.request_id)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def dialect() -> str:
    """The dialect of `caller`; test modules of another one override it."""
    return "nim"


@pytest.fixture
def caller(engine: FakeEngine, dialect: str) -> Caller:
    return Caller(engine, dialect)


@pytest.fixture
def calling() -> Callable[..., Caller]:
    """A caller for an engine of the test's own, of `nim` or the dialect named."""
    return Caller


@pytest.fixture
def playing() -> Callable[[Script], FakeEngine]:
    """An engine that plays a script."""
    return FakeEngine


@pytest.fixture
def spell() -> Callable[..., Script]:
    """The script that spells a text."""
    return plain
