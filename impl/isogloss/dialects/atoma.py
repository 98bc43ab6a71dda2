"""Atoma completions: the handlers of the document `atoma`."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from isogloss_api.atoma import effective, requests, responses
from isogloss_api.runtime import Call, Measured, Reply, Stream

from isogloss.dialects import health
from isogloss.dialects.answering import Answering, Wanted, Whole
from isogloss.dialects.completions import Fragment, Tally
from isogloss.dialects.fields import includes_usage, infill_stopping, openai_sampling, stop_texts
from isogloss.dialects.logprobs import Form
from isogloss.dialects.models import model_list
from isogloss.dialects.prompts import Prompt, measured
from isogloss.engine.api import Engine, Stopping, Tokenizer

Prompts = list[Prompt]


class AtomaHandlers:
    """Handlers of the document `atoma`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fingerprint = fingerprint(engine)

    async def measure_create_completion(self, body: requests.CompletionsRequest, /) -> Measured[Prompts]:
        """Tokenize the prompts."""
        suffix = body.suffix if isinstance(body.suffix, str) else None
        return await measured(body.prompt, self._engine, suffix=suffix)

    async def create_completion(
        self, body: requests.CompletionsRequest, prompt: Prompts, call: Call[effective.CompletionsRequest], /
    ) -> Reply[responses.CompletionsResponse] | Stream[responses.CompletionsStreamResponse]:
        """Continue the prompts. Raises Fault `engine_refused`, `overloaded` or `engine_failure`."""
        answering = Answering(self._engine, prompt, _wanted(call, self._engine.tokenizer), call.eff["model"])
        if call.eff["stream"]:
            return Stream(self._chunks(answering, usage=includes_usage(call.eff["stream_options"])))
        return Reply(await self._whole(answering))

    async def list_models(self) -> Reply[responses.ModelList]:
        """The models this server answers for."""
        return Reply(model_list(self._engine.card))

    async def health_ready(self) -> Reply[responses.HealthState]:
        """Whether the engine takes requests. Raises Fault `overloaded` while it does not."""
        return Reply(health.ready(self._engine))

    async def _whole(self, answering: Answering) -> responses.CompletionsResponse:
        return {
            **answering.head,
            "choices": [_whole_choice(choice) for choice in await answering.whole()],
            "usage": _usage(answering.tally),
            "system_fingerprint": self._fingerprint,
        }

    async def _chunks(
        self, answering: Answering, *, usage: bool
    ) -> AsyncGenerator[responses.CompletionsStreamResponse, None]:
        async with aclosing(answering.pieces(usage=usage)) as pieces:
            async for piece in pieces:
                chunk: responses.CompletionsStreamResponse = {
                    **answering.head,
                    "choices": [] if piece.fragment is None else [_stream_choice(piece.fragment)],
                    "system_fingerprint": self._fingerprint,
                }
                if usage:
                    chunk["usage"] = None if piece.usage is None else _usage(piece.usage)
                yield chunk


def fingerprint(engine: Engine) -> str:
    """Names engine and model: equal after a restart, another one for anything that changes what is generated."""
    named = f"{type(engine).__name__} {replace(engine.card, created=0)}"
    return f"fp_{hashlib.sha256(named.encode()).hexdigest()[:12]}"


def _wanted(call: Call[effective.CompletionsRequest], tokenizer: Tokenizer) -> Wanted:
    eff = call.eff
    stopping = Stopping(max_tokens=eff["max_tokens"], stop=stop_texts(eff["stop"]))
    return Wanted(
        sampling=openai_sampling(eff, eff["logit_bias"]),
        stopping=infill_stopping(stopping, eff["suffix"], tokenizer),
        n=eff["n"],
        best_of=eff["best_of"],
        echo=eff["echo"],
        form=None if eff["logprobs"] is None else Form(eff["logprobs"]),
        hints=call.hints,
    )


def _whole_choice(choice: Whole) -> responses.CompletionChoice:
    return {
        "text": choice.text,
        "index": choice.index,
        "finish_reason": choice.finish.reason,
        "logprobs": choice.logprobs,
    }


def _stream_choice(fragment: Fragment) -> responses.CompletionStreamChoice:
    return {
        "text": fragment.text,
        "index": fragment.index,
        "finish_reason": fragment.finish_reason,
        "logprobs": fragment.logprobs,
    }


def _usage(tally: Tally) -> responses.Usage:
    return {
        "prompt_tokens": tally.prompt_tokens,
        "completion_tokens": tally.completion_tokens,
        "total_tokens": tally.total_tokens,
        "completion_tokens_details": {
            "accepted_prediction_tokens": 0,
            "audio_tokens": 0,
            "reasoning_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": tally.cached_tokens},
    }
