from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from isogloss.engine.api import Delta, GenerationRequest, Guide, Sampling, Stopping
from isogloss.engine.guides.compiler import GuideCompiler
from isogloss.engine.guides.matcher import Tokens
from isogloss.engine.scripted import ScriptedEngine
from isogloss.engine.scripted.vocabulary import guide_vocabulary


@pytest.fixture(scope="session")
def tokens() -> Tokens:
    return Tokens(guide_vocabulary())


@pytest.fixture(scope="session")
def compiler() -> Iterator[GuideCompiler]:
    compiler = GuideCompiler(guide_vocabulary())
    yield compiler
    compiler.close()


@pytest.fixture
async def engine(compiler: GuideCompiler) -> AsyncIterator[ScriptedEngine]:
    """An engine that shares its workers with the other tests."""
    engine = ScriptedEngine()
    await engine.start()
    engine._guides = compiler
    yield engine


@pytest.fixture
def ask(engine) -> Callable:
    """Deltas of one request with a guide."""

    async def run(guide: Guide, *, sampling: Sampling | None = None, hints=None, n=1, logprobs=None, **stopping):
        request = GenerationRequest(
            "r",
            [72, 105],
            Stopping(**{"max_tokens": 400, **stopping}),
            sampling or Sampling(seed=1),
            n=n,
            guide=guide,
            logprobs=logprobs,
            hints=hints or {},
        )
        events = [event async for event in engine.generate(request) if isinstance(event, Delta)]
        return [[event for event in events if event.choice == choice] for choice in range(n)]

    return run


@pytest.fixture
def texts(ask) -> Callable:
    """Text and reason of each choice."""

    async def run(guide: Guide, **options) -> list[tuple[str, str]]:
        choices = await ask(guide, **options)
        return [("".join(d.text for d in deltas), deltas[-1].finish.reason) for deltas in choices]

    return run
