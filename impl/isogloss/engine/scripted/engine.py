"""An engine that follows scripts, for tests, mock servers and the suite's own tests."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from isogloss.engine.api import (
    EngineFailure,
    EngineOverloaded,
    EngineStatus,
    Event,
    GenerationRequest,
    ModelCard,
)
from isogloss.engine.chat.registry import REASONING_FORMATS
from isogloss.engine.guides.compiler import GuideCompiler
from isogloss.engine.media import MediaProcessor
from isogloss.engine.scripted.media import ScriptedProcessor
from isogloss.engine.scripted.model import tiny_model
from isogloss.engine.scripted.script import read_script
from isogloss.engine.scripted.source import Limits, ScriptedPool, ScriptedSource
from isogloss.engine.scripted.vocabulary import PLACEHOLDERS, VOCAB_SIZE, ByteTokenizer, assign_ids, guide_vocabulary
from isogloss.engine.text import TextStage

_LAYERS = 4
_HIDDEN_SIZE = 64


class ScriptedEngine:
    """Follows the script in a request's hint `x-isogloss-script`; without one it is a tiny model.

    All of it runs on the event loop that reads it.
    """

    def __init__(
        self,
        name: str = "scripted",
        *,
        limits: Limits | None = None,
        features: frozenset[str] = frozenset({"guided", "beam", "tools", *PLACEHOLDERS}),
        chat_template: str | None = None,
        adapters: tuple[str, ...] = (),
        tool_format: str | None = "hermes",
        reasoning_format: str | None = None,
    ) -> None:
        """`adapters` are more names for the same model. The formats are by their names in `engine.chat`; without a
        `tool_format` the model calls no functions, and the feature `tools` is off."""
        limits = limits or Limits()
        self._pool = ScriptedPool(tiny_model(), limits)
        self._guides = GuideCompiler(guide_vocabulary())
        self._ready = False
        self._features = features if tool_format is not None else features - {"tools"}
        reasoning = None if reasoning_format is None else REASONING_FORMATS[reasoning_format]
        self._tokenizer = ByteTokenizer(reasoning=reasoning)
        self._processor = ScriptedProcessor()
        self._card = ModelCard(
            name=name,
            context_length=limits.context_length,
            vocab_size=VOCAB_SIZE,
            layers=_LAYERS,
            hidden_size=_HIDDEN_SIZE,
            created=int(time.time()),
            chat_template=chat_template,
            adapters=adapters,
            tool_format=tool_format,
            reasoning_format=reasoning_format,
        )

    @property
    def card(self) -> ModelCard:
        """What is served."""
        return self._card

    @property
    def tokenizer(self) -> ByteTokenizer:
        """The tokenizer, without any script's own tokens."""
        return self._tokenizer

    @property
    def processor(self) -> MediaProcessor:
        """Takes media into prompts."""
        return self._processor

    @property
    def features(self) -> frozenset[str]:
        """Names of the documents' `x-feature` marks that this engine serves."""
        return self._features

    async def start(self) -> None:
        """Take requests from now on."""
        self._ready = True

    async def stop(self) -> None:
        """End running and waiting requests with EngineFailure."""
        self._ready = False
        self._pool.fail(EngineFailure("the engine was stopped"))
        self._guides.close()
        self._guides = GuideCompiler(guide_vocabulary())

    def status(self) -> EngineStatus:
        """A snapshot; cheap, from any thread. There is no KV cache, so its usage is 0."""
        pool = self._pool
        return EngineStatus(
            ready=self._ready,
            running=pool.admission.running,
            waiting=pool.admission.waiting,
            prompt_tokens=pool.totals.prompt_tokens,
            generated_tokens=pool.totals.generated_tokens,
        )

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        """Events of one request. Closing the generator aborts the request and frees its place.

        An answer ends with `length` where the context does. Raises GuideError for a guide that cannot be followed,
        EngineRefused for a broken script and for a prompt that is empty, too long or not of the vocabulary;
        EngineOverloaded if too many wait or the engine isn't running; EngineFailure if the script says so or the
        engine stops.
        """
        if not self._ready:
            raise EngineOverloaded("the engine is not running")
        script = read_script(request.hints, self._card.tool_format)
        tokens = None if script.tokens is None else assign_ids(script.tokens)
        tokenizer = ByteTokenizer(tokens.extra) if tokens is not None and tokens.extra else self._tokenizer
        if request.guide is not None:
            request = replace(request, guide=await self._guides.ready(request.guide))
        stage = TextStage(tokenizer, ScriptedSource(self._pool, script, tokens))
        async with aclosing(stage.generate(request)) as events:
            async for event in events:
                yield event
