"""Handlers of a dialect without a web layer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from isogloss.dialects.registry import Dialect, Options, build, features
from isogloss.engine.api import Engine
from isogloss_api import document
from isogloss_api.runtime import Call, Context, Stream
from isogloss_spec.judge import Judge, Verdict
from jsonschema_rs import Draft202012Validator, Registry

SHAPES = {
    "nim": ("create_completion", "CompletionResponse", "CompletionStreamResponse"),
    "atoma": ("create_completion", "CompletionsResponse", "CompletionsStreamResponse"),
    "acs": ("create_completion", "CompletionResponse", "CompletionChunk"),
    "mindie": ("create_chat_completion", "ChatCompletion", "ChatChunk"),
}
"""Dialect to its main operation and the names of its answer and its chunk."""
INPUT: dict[str, Mapping[str, Any]] = {
    "create_completion": {"prompt": "Hi"},
    "create_chat_completion": {"messages": [{"role": "user", "content": "Hi"}]},
}


class Caller:
    """Sends bodies to the route stubs of a dialect as the web layer does, and validates what comes back."""

    def __init__(self, engine: Engine, name: str = "nim", options: Options | None = None) -> None:
        bundled, options = document(name), options or Options()
        self._operation, *shapes = SHAPES[name]
        self.engine = engine
        self.dialect: Dialect = build(name, engine, options)
        self.model = self.dialect.model or engine.card.name
        self.judge = Judge(bundled, self._operation, models={self.model}, features=features(engine, options))
        self.context: Context = {}
        registry = Registry([(f"urn:{name}", bundled)])
        self.whole, self.chunk = (
            Draft202012Validator({"$ref": f"urn:{name}#/components/schemas/{shape}"}, registry=registry)
            for shape in shapes
        )

    async def answer(self, hints: dict[str, str] | None = None, **fields: Any) -> Any:
        """Reply or Stream for a body with these fields; `...` leaves a field out."""
        body = {"model": self.model, **INPUT[self._operation], **fields}
        raw = json.dumps({name: value for name, value in body.items() if value is not ...}).encode()
        exchange = Exchange(self, self.judge.check(raw), hints or {})
        return await getattr(self.dialect.routes, self._operation)(exchange)

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
