"""ACS completions with base models: the handlers of the document `acs`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Never

from isogloss_api.acs import effective, requests, responses
from isogloss_api.runtime import Call, Measured, Reply, Stream
from isogloss_spec.faults import Fault

from isogloss.dialects.answering import Answering, Wanted, Whole
from isogloss.dialects.completions import Fragment, Tally
from isogloss.dialects.fields import counts_usage, includes_usage, vllm_sampling, vllm_stopping
from isogloss.dialects.logprobs import Form
from isogloss.dialects.models import model_list
from isogloss.dialects.prompts import Prompt, measured
from isogloss.engine.api import Engine

Prompts = list[Prompt]


class AcsHandlers:
    """Handlers of the document `acs`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def measure_create_completion(self, body: requests.CompletionRequest, /) -> Measured[Prompts]:
        """Tokenize the prompts."""
        add_special_tokens = body.add_special_tokens is not False
        return await measured(body.prompt, self._engine, add_special_tokens=add_special_tokens)

    async def create_completion(
        self, body: requests.CompletionRequest, prompt: Prompts, call: Call[effective.CompletionRequest], /
    ) -> Reply[responses.CompletionResponse] | Stream[responses.CompletionChunk]:
        """Continue the prompts. Raises Fault `engine_refused`, `overloaded` or `engine_failure`."""
        eff = call.eff
        answer = _Answer(
            Answering(self._engine, prompt, _wanted(call, self._engine.card.vocab_size), eff["model"]),
            with_ids=eff["return_token_ids"],
        )
        return Stream(answer.chunks(eff["stream_options"])) if eff["stream"] else Reply(await answer.whole())

    async def create_chat_completion(self) -> Never:
        """Base models have no chat format. Raises Fault `acs.chat_refused`."""
        raise Fault("acs.chat_refused")

    async def list_models(self) -> Reply[responses.ModelList]:
        """The models this server answers for."""
        return Reply(model_list(self._engine.card))


class _Answer:
    """The answer to one call, in the shapes of the document."""

    def __init__(self, answering: Answering, *, with_ids: bool) -> None:
        self._answering = answering
        self._with_ids = with_ids

    async def whole(self) -> responses.CompletionResponse:
        """The answer in one piece."""
        choices = [self._whole_choice(choice) for choice in await self._answering.whole()]
        return {**self._answering.head, "choices": choices, "usage": _usage(self._answering.tally)}

    async def chunks(self, options: effective.StreamOptions | None) -> AsyncGenerator[responses.CompletionChunk, None]:
        """The answer in pieces; the ids of a prompt come with the first piece of each of its choices."""
        usage = includes_usage(options)
        async with aclosing(self._answering.pieces(usage=usage, usage_so_far=counts_usage(options))) as pieces:
            async for piece in pieces:
                choices = [] if piece.fragment is None else [self._chunk_choice(piece.fragment)]
                chunk: responses.CompletionChunk = {**self._answering.head, "choices": choices}
                if usage:
                    chunk["usage"] = None if piece.usage is None else _usage(piece.usage)
                yield chunk

    def _whole_choice(self, whole: Whole) -> responses.CompletionChoice:
        choice: responses.CompletionChoice = {
            "index": whole.index,
            "text": whole.text,
            "logprobs": whole.logprobs,
            "finish_reason": whole.finish.reason,
            "stop_reason": whole.finish.stop,
            "prompt_logprobs": whole.prompt_logprobs,
        }
        if self._with_ids:
            choice["token_ids"] = list(whole.token_ids)
            choice["prompt_token_ids"] = list(whole.prompt)
        return choice

    def _chunk_choice(self, fragment: Fragment) -> responses.ChunkChoice:
        choice: responses.ChunkChoice = {
            "index": fragment.index,
            "text": fragment.text,
            "logprobs": fragment.logprobs,
            "finish_reason": fragment.finish_reason,
            "stop_reason": fragment.stop_reason,
        }
        if self._with_ids:
            choice["token_ids"] = list(fragment.token_ids)
            if fragment.first:
                choice["prompt_token_ids"] = list(self._answering.prompt(fragment.index))
        return choice


def _wanted(call: Call[effective.CompletionRequest], vocab_size: int) -> Wanted:
    eff = call.eff
    return Wanted(
        sampling=vllm_sampling(eff),
        stopping=replace(vllm_stopping(eff), stop_token_ids=frozenset(eff["stop_token_ids"] or ())),
        n=eff["n"],
        echo=eff["echo"],
        form=None if eff["logprobs"] is None else Form(eff["logprobs"], eff["return_tokens_as_token_ids"]),
        prompt_logprobs=vocab_size if eff["prompt_logprobs"] == -1 else eff["prompt_logprobs"],
        skip_special_tokens=eff["skip_special_tokens"],
        priority=int(eff["priority"]),
        hints=call.hints,
    )


def _usage(tally: Tally) -> responses.Usage:
    return {
        "prompt_tokens": tally.prompt_tokens,
        "total_tokens": tally.total_tokens,
        "completion_tokens": tally.completion_tokens,
    }
