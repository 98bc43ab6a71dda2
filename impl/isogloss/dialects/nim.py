"""NVIDIA NIM completions: the handlers of the document `nim`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from isogloss_api.nim import effective, requests, responses
from isogloss_api.runtime import Call, Measured, Reply, Stream

from isogloss.dialects import health
from isogloss.dialects.answering import Answering, Wanted, Whole
from isogloss.dialects.completions import Fragment, Tally
from isogloss.dialects.fields import counts_usage, includes_usage, infill_stopping, vllm_sampling, vllm_stopping
from isogloss.dialects.guides import Guided, guided_fields, response_format
from isogloss.dialects.logprobs import Form
from isogloss.dialects.models import model_list
from isogloss.dialects.prompts import Prompt, measured
from isogloss.engine.api import Engine, Tokenizer

Prompts = list[Prompt]


class NimHandlers:
    """Handlers of the document `nim`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def measure_create_completion(self, body: requests.CompletionRequest, /) -> Measured[Prompts]:
        """Tokenize the prompts."""
        add_special_tokens = body.add_special_tokens is not False
        suffix = body.suffix if isinstance(body.suffix, str) else None
        return await measured(body.prompt, self._engine, add_special_tokens=add_special_tokens, suffix=suffix)

    async def create_completion(
        self, body: requests.CompletionRequest, prompt: Prompts, call: Call[effective.CompletionRequest], /
    ) -> Reply[responses.CompletionResponse] | Stream[responses.CompletionStreamResponse]:
        """Continue the prompts.

        Raises Fault `engine_refused`, `overloaded`, `engine_failure` or `nim.guide_invalid`.
        """
        answering = Answering(self._engine, prompt, _wanted(call, self._engine.tokenizer), call.eff["model"])
        if call.eff["stream"]:
            return Stream(_chunks(answering, call.eff["stream_options"]))
        return Reply(await _whole(answering))

    async def list_models(self) -> Reply[responses.ModelList]:
        """The models this server answers for."""
        return Reply(model_list(self._engine.card))

    async def health_live(self) -> Reply[responses.HealthState]:
        """Whether the process lives."""
        return Reply(health.live())

    async def health_ready(self) -> Reply[responses.HealthState]:
        """Whether the engine takes requests. Raises Fault `overloaded` while it does not."""
        return Reply(health.ready(self._engine))


def _wanted(call: Call[effective.CompletionRequest], tokenizer: Tokenizer) -> Wanted:
    eff = call.eff
    return Wanted(
        sampling=vllm_sampling(eff, eff["logit_bias"]),
        stopping=infill_stopping(vllm_stopping(eff), eff["suffix"], tokenizer),
        n=eff["n"],
        best_of=eff["best_of"],
        echo=eff["echo"],
        form=None if eff["logprobs"] is None else Form(eff["logprobs"], eff["return_tokens_as_token_ids"]),
        prompt_logprobs=None if eff["stream"] else eff["prompt_logprobs"],
        guided=_guided(eff),
        hints=call.hints,
    )


def _guided(eff: effective.CompletionRequest) -> Guided | None:
    """The one guide of a request, wherever it stands. `guided_decoding_backend` changes nothing: there is one."""
    extensions, fault = eff["nvext"], "nim.guide_invalid"
    own = guided_fields(eff, fault, whitespace=eff["guided_whitespace_pattern"])
    older = None if extensions is None else guided_fields(extensions, fault, below="nvext.")
    return own or response_format(eff["response_format"], fault) or older


async def _whole(answering: Answering) -> responses.CompletionResponse:
    choices = [_whole_choice(choice) for choice in await answering.whole()]
    return {**answering.head, "choices": choices, "usage": _usage(answering.tally)}


async def _chunks(
    answering: Answering, options: effective.StreamOptions | None
) -> AsyncGenerator[responses.CompletionStreamResponse, None]:
    usage = includes_usage(options)
    async with aclosing(answering.pieces(usage=usage, usage_so_far=counts_usage(options))) as pieces:
        async for piece in pieces:
            choices = [] if piece.fragment is None else [_stream_choice(piece.fragment)]
            chunk: responses.CompletionStreamResponse = {**answering.head, "choices": choices}
            if usage:
                chunk["usage"] = None if piece.usage is None else _usage(piece.usage)
            yield chunk


def _whole_choice(choice: Whole) -> responses.CompletionChoice:
    return {
        "index": choice.index,
        "text": choice.text,
        "logprobs": choice.logprobs,
        "finish_reason": choice.finish.reason,
        "stop_reason": choice.finish.stop,
        "prompt_logprobs": choice.prompt_logprobs,
    }


def _stream_choice(fragment: Fragment) -> responses.CompletionStreamChoice:
    return {
        "index": fragment.index,
        "text": fragment.text,
        "logprobs": fragment.logprobs,
        "finish_reason": fragment.finish_reason,
        "stop_reason": fragment.stop_reason,
    }


def _usage(tally: Tally) -> responses.Usage:
    return {
        "prompt_tokens": tally.prompt_tokens,
        "total_tokens": tally.total_tokens,
        "completion_tokens": tally.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": tally.cached_tokens},
    }
