"""An engine that says what a test tells it, and a caller that judges, answers and validates."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

import pytest
from isogloss.dialects.registry import Dialect, build, features
from isogloss.engine.api import (
    Delta,
    Engine,
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
from isogloss_api import document
from isogloss_api.runtime import Call, Context, Stream
from isogloss_spec.judge import Judge, Verdict
from jsonschema_rs import Draft202012Validator, Registry

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


SHAPES = {
    "nim": ("CompletionResponse", "CompletionStreamResponse"),
    "atoma": ("CompletionsResponse", "CompletionsStreamResponse"),
    "acs": ("CompletionResponse", "CompletionChunk"),
}
"""Dialect to the names of its answer and its chunk."""


class Caller:
    """Sends bodies to the route stubs of a dialect as the web layer does, and validates what comes back."""

    def __init__(self, engine: Engine, name: str = "nim") -> None:
        bundled = document(name)
        self.dialect: Dialect = build(name, engine)
        self.judge = Judge(bundled, "create_completion", models={engine.card.name}, features=features(engine))
        self.model = engine.card.name
        self.context: Context = {}
        registry = Registry([(f"urn:{name}", bundled)])
        self.whole, self.chunk = (
            Draft202012Validator({"$ref": f"urn:{name}#/components/schemas/{shape}"}, registry=registry)
            for shape in SHAPES[name]
        )

    async def answer(self, hints: dict[str, str] | None = None, **fields: Any) -> Any:
        """Reply or Stream for a body with these fields; `...` leaves a field out."""
        body = {"model": self.model, "prompt": "Hi", **fields}
        raw = json.dumps({name: value for name, value in body.items() if value is not ...}).encode()
        verdict = self.judge.check(raw)
        exchange = Exchange(self, verdict, hints or {})
        return await self.dialect.routes.create_completion(exchange)  # type: ignore[attr-defined]

    async def ask(self, **fields: Any) -> Any:
        """The body of a whole answer."""
        body = (await self.answer(**fields)).body
        self.whole.validate(body)
        json.dumps(body, allow_nan=False)
        return body

    async def chunks(self, **fields: Any) -> list[Any]:
        """All chunks of a stream."""
        stream = await self.answer(stream=True, **fields)
        assert isinstance(stream, Stream)
        found = [chunk async for chunk in stream.events]
        for chunk in found:
            self.chunk.validate(chunk)
        return found


class Exchange:
    """What a route stub sees of a request."""

    def __init__(self, caller: Caller, verdict: Verdict, hints: dict[str, str]) -> None:
        self.body = verdict.body
        self.call: Call[Any] = Call("the-client's-id", verdict.eff, hints=hints)
        self._caller = caller
        self._verdict = verdict

    def admit(self, context: Context) -> None:
        self._caller.context = context
        self._caller.judge.check_prompt(self._verdict, context)


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
