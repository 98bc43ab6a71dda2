"""A caller for `mindie`, and an engine whose sequences end with measured times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.registry import Options
from isogloss.engine.api import Delta, Engine, Event, Finish, Started, Timing, TokenLogprob, TokenScore
from support.caller import Caller


def chat_caller(engine: Engine, config: MindIEConfig | None = None, media: Any = None) -> Caller:
    """A caller for an engine, with a configuration."""
    return Caller(engine, "mindie", Options(config or MindIEConfig(), media))


def timing(tokens: int) -> Timing:
    """Times of so many tokens, each another."""
    return Timing(
        queue=0.005,
        prefill=0.25,
        decode=tuple(0.01 * place for place in range(1, tokens)),
        waits=tuple(0.001 * place for place in range(1, tokens)),
        batch_sizes=tuple(range(1, tokens + 1)),
    )


def sequences(*texts: str, logprobs: Iterable[float] = (), cached: int = 0) -> Callable[..., Iterable[Event]]:
    """A script: sequence i spells text i, a token per character, in steps that all sequences share."""
    each = list(logprobs) or [-1.0] * len(texts)

    def script(request: Any) -> Iterable[Event]:
        yield Started(cached)
        for place in range(max(map(len, texts))):
            for index, text in enumerate(texts):
                if place < len(text):
                    scores = () if request.logprobs is None else (score(text[place], each[index]),)
                    last = place + 1 == len(text)
                    finish = Finish("stop" if index else "length", None, timing(len(text))) if last else None
                    yield Delta(index, text[place], (ord(text[place]),), scores, finish)

    return script


def score(char: str, logprob: float) -> TokenScore:
    """A token with two alternatives, of which it is the second."""
    chosen = TokenLogprob(ord(char), char, logprob, 2)
    return TokenScore(chosen, (TokenLogprob(64, "@", logprob / 2, 1), chosen))


@pytest.fixture
def engine(playing) -> Any:
    return playing(sequences("ok"))


@pytest.fixture
def caller(engine) -> Caller:
    return chat_caller(engine)


@pytest.fixture
def calling() -> Callable[..., Caller]:
    """A caller for an engine of the test's own, with a configuration."""
    return chat_caller


@pytest.fixture
def spelling(playing) -> Callable[..., Any]:
    """An engine whose sequences spell texts."""
    return lambda *texts, **options: playing(sequences(*texts, **options))
