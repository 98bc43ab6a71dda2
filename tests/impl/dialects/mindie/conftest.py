"""A caller for `mindie`, and an engine whose sequences end with measured times."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.registry import Options, build, features
from isogloss.engine.api import Delta, Engine, Event, Finish, Started, Timing, TokenLogprob, TokenScore
from isogloss_api import document
from isogloss_api.runtime import Call, Context, Stream
from isogloss_spec.judge import Judge, Verdict
from jsonschema_rs import Draft202012Validator, Registry

HI = [{"role": "user", "content": "Hi"}]


class ChatCaller:
    """Sends bodies to the route stubs as the web layer does, and validates what comes back."""

    def __init__(self, engine: Engine, config: MindIEConfig | None = None, media: Any = None) -> None:
        bundled = document("mindie")
        options = Options(config or MindIEConfig(), media)
        self.engine = engine
        self.dialect = build("mindie", engine, options)
        self.model = self.dialect.model or engine.card.name
        self.judge = Judge(bundled, "create_chat_completion", models={self.model}, features=features(engine, options))
        self.context: Context = {}
        registry = Registry([("urn:mindie", bundled)])
        self.whole, self.chunk = (
            Draft202012Validator({"$ref": f"urn:mindie#/components/schemas/{shape}"}, registry=registry)
            for shape in ("ChatCompletion", "ChatChunk")
        )

    async def answer(self, hints: dict[str, str] | None = None, **fields: Any) -> Any:
        """Reply or Stream for a body with these fields."""
        body = {"model": self.model, "messages": HI, **fields}
        exchange = Exchange(self, self.judge.check(json.dumps(body).encode()), hints or {})
        return await self.dialect.routes.create_chat_completion(exchange)  # type: ignore[attr-defined]

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

    def __init__(self, caller: ChatCaller, verdict: Verdict, hints: dict[str, str]) -> None:
        self.body = verdict.body
        self.call: Call[Any] = Call("the-client's-id", verdict.eff, hints=hints)
        self._caller = caller
        self._verdict = verdict

    def admit(self, context: Context) -> None:
        self._caller.context = context
        self._caller.judge.check_prompt(self._verdict, context)


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
def caller(engine) -> ChatCaller:
    return ChatCaller(engine)


@pytest.fixture
def calling() -> Callable[..., ChatCaller]:
    """A caller for an engine of the test's own, with a configuration."""
    return ChatCaller


@pytest.fixture
def spelling(playing) -> Callable[..., Any]:
    """An engine whose sequences spell texts."""
    return lambda *texts, **options: playing(sequences(*texts, **options))
