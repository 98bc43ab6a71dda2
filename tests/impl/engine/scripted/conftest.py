from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from isogloss.engine.api import Delta, Event, Finish, GenerationRequest, Sampling, Stopping
from isogloss.engine.scripted import HINT, Limits, ScriptedEngine


def header(**script) -> dict[str, str]:
    return {HINT: base64.b64encode(json.dumps(script).encode()).decode()}


@dataclass
class Answer:
    """All events of one request."""

    events: list[Event] = field(default_factory=list)

    def deltas(self, choice: int = 0) -> list[Delta]:
        return [e for e in self.events if isinstance(e, Delta) and e.choice == choice]

    def text(self, choice: int = 0) -> str:
        return "".join(delta.text for delta in self.deltas(choice))

    def tokens(self, choice: int = 0) -> list[int]:
        return [token for delta in self.deltas(choice) for token in delta.token_ids]

    def scores(self, choice: int = 0) -> list:
        return [score for delta in self.deltas(choice) for score in delta.scores]

    def finish(self, choice: int = 0) -> Finish:
        return self.deltas(choice)[-1].finish


def make_request(
    prompt="Tell a story",
    *,
    sampling=None,
    script=None,
    n=1,
    logprobs=None,
    prompt_logprobs=None,
    priority=0,
    skip_special_tokens=True,
    **stopping,
) -> GenerationRequest:
    ids = ScriptedEngine().tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
    return GenerationRequest(
        "r",
        ids,
        Stopping(**{"max_tokens": 16, **stopping}),
        sampling or Sampling(temperature=0),
        n=n,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        priority=priority,
        skip_special_tokens=skip_special_tokens,
        hints={} if script is None else header(**script),
    )


@pytest.fixture
def request_of() -> Callable[..., GenerationRequest]:
    return make_request


@pytest.fixture
async def engine() -> AsyncIterator[ScriptedEngine]:
    engine = ScriptedEngine(limits=Limits(context_length=512, max_num_seqs=4, max_waiting=2))
    await engine.start()
    yield engine
    await engine.stop()


@pytest.fixture
def ask(engine):
    """Run one request to its end."""

    async def run(*args, **options) -> Answer:
        return Answer([event async for event in engine.generate(make_request(*args, **options))])

    return run
