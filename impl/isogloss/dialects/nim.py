"""NVIDIA NIM completions: the handlers of the document `nim`."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from isogloss_api.nim import effective, requests, responses
from isogloss_api.runtime import Call, Measured, Reply, Stream
from isogloss_spec.faults import Fault

from isogloss.dialects import health
from isogloss.dialects.completions import Completion, Fragment, Tally
from isogloss.dialects.echo import echo_logprobs, echo_text
from isogloss.dialects.engine_call import run
from isogloss.dialects.logprobs import Form, joined, prompt_logprobs
from isogloss.dialects.models import model_list
from isogloss.dialects.prompts import Prompt, measure, tokenize
from isogloss.engine.api import Engine, GenerationRequest, Sampling, Stopping

Prompts = list[Prompt]


class NimHandlers:
    """Handlers of the document `nim`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def measure_create_completion(self, body: requests.CompletionRequest, /) -> Measured[Prompts]:
        """Tokenize the prompts."""
        add_special_tokens = body.add_special_tokens is not False
        prompts = await tokenize(body.prompt, self._engine.tokenizer, add_special_tokens=add_special_tokens)
        return Measured(measure(prompts, self._engine.card), prompts)

    async def create_completion(
        self, body: requests.CompletionRequest, prompt: Prompts, call: Call[effective.CompletionRequest], /
    ) -> Reply[responses.CompletionResponse] | Stream[responses.CompletionStreamResponse]:
        """Continue the prompts. Raises Fault `engine_refused`, `overloaded` or `engine_failure`."""
        answer = _Answer(self._engine, prompt, call)
        return Stream(answer.chunks()) if call.eff["stream"] else Reply(await answer.whole())

    async def list_models(self) -> Reply[responses.ModelList]:
        """The models this server answers for."""
        return Reply(model_list(self._engine.card))

    async def health_live(self) -> Reply[responses.HealthState]:
        """Whether the process lives."""
        return Reply(health.live())

    async def health_ready(self) -> Reply[responses.HealthState]:
        """Whether the engine takes requests. Raises Fault `overloaded` while it does not."""
        return Reply(health.ready(self._engine))


class _Answer:
    """One completion call while it is answered."""

    def __init__(self, engine: Engine, prompts: Prompts, call: Call[effective.CompletionRequest]) -> None:
        eff = call.eff
        self._engine = engine
        self._prompts = prompts
        self._call = call
        self._eff = eff
        self._id = f"cmpl-{os.urandom(16).hex()}"
        self._created = int(time.time())
        self._form = None if eff["logprobs"] is None else Form(eff["logprobs"], eff["return_tokens_as_token_ids"])
        self._echoes = [echo_text(prompt, engine.tokenizer) if eff["echo"] else "" for prompt in prompts]
        prompt_tokens = sum(len(prompt.tokens) for prompt in prompts)
        self._completion = Completion(prompt_tokens, [len(text) for text in self._echoes], eff["n"], self._form)

    async def whole(self) -> responses.CompletionResponse:
        """The answer in one piece."""
        completion = self._completion
        async with aclosing(run(self._engine, self._requests())) as events:
            async for position, event in events:
                completion.add(position, event)
        openings = [await self._opening(position) for position in range(len(self._prompts))]
        return {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": self._eff["model"],
            "choices": [
                _whole_choice(choice.take(), openings[choice.index // self._eff["n"]]) for choice in completion.choices
            ],
            "usage": _usage(completion.tally),
        }

    async def chunks(self) -> AsyncGenerator[responses.CompletionStreamResponse, None]:
        """The answer in pieces: one per event of the engine that shows something, then the usage if asked for."""
        completion = self._completion
        options = self._eff["stream_options"]
        with_usage = options is not None and options["include_usage"]
        so_far = options is not None and options["continuous_usage_stats"]
        async with aclosing(run(self._engine, self._requests())) as events:
            async for position, event in events:
                choice = completion.add(position, event)
                fragment = None if choice is None else choice.take()
                if fragment is None:
                    continue
                chunk = self._chunk([_stream_choice(fragment)])
                if with_usage:
                    chunk["usage"] = _usage(completion.tally) if so_far else None
                yield chunk
        if with_usage:
            chunk = self._chunk([])
            chunk["usage"] = _usage(completion.tally)
            yield chunk

    def _chunk(self, choices: list[responses.CompletionStreamChoice]) -> responses.CompletionStreamResponse:
        return {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": self._eff["model"],
            "choices": choices,
        }

    def _requests(self) -> list[GenerationRequest]:
        eff = self._eff
        sampling, stopping, scored = _sampling(eff), _stopping(eff), _scored_alternatives(eff)
        return [
            GenerationRequest(
                request_id=f"{self._id}-{position}",
                prompt=prompt.tokens,
                stopping=stopping,
                sampling=sampling,
                n=eff["n"],
                logprobs=eff["logprobs"],
                prompt_logprobs=scored,
                hints=self._call.hints,
            )
            for position, prompt in enumerate(self._prompts)
        ]

    async def _opening(self, position: int) -> _Opening:
        """What the choices of one prompt have in common."""
        eff, text = self._eff, self._echoes[position]
        scores = self._completion.prompt_scores.get(position)
        if scores is None:
            return _Opening(text)
        alternatives = eff["prompt_logprobs"]
        of_prompt = None if alternatives is None else prompt_logprobs(scores, alternatives)
        if self._form is None or not eff["echo"]:
            return _Opening(text, None, of_prompt)
        prompt = self._prompts[position]
        echoed = await echo_logprobs(prompt, text, scores, self._engine.tokenizer, self._form)
        return _Opening(text, echoed, of_prompt)


@dataclass(frozen=True, slots=True)
class _Opening:
    """What comes before the completion in each choice of a prompt, or beside it."""

    text: str
    logprobs: responses.Logprobs | None = None
    prompt_logprobs: responses.PromptLogprobs | None = None


def _sampling(eff: effective.CompletionRequest) -> Sampling:
    return Sampling(
        temperature=eff["temperature"],
        top_p=eff["top_p"],
        top_k=max(eff["top_k"], 0),
        min_p=eff["min_p"],
        presence_penalty=eff["presence_penalty"],
        frequency_penalty=eff["frequency_penalty"],
        repetition_penalty=eff["repetition_penalty"],
        logit_bias={int(key): value for key, value in (eff["logit_bias"] or {}).items()},
        seed=eff["seed"],
    )


def _stopping(eff: effective.CompletionRequest) -> Stopping:
    stop = eff["stop"] or ()
    return Stopping(
        max_tokens=eff["max_tokens"],
        min_tokens=eff["min_tokens"],
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        include_stop=eff["include_stop_str_in_output"],
        ignore_eos=eff["ignore_eos"],
    )


def _scored_alternatives(eff: effective.CompletionRequest) -> int | None:
    """Alternatives to score per token of the prompt; None if nothing of the answer needs them."""
    if eff["stream"]:
        return None
    wanted = [eff["prompt_logprobs"], eff["logprobs"] if eff["echo"] else None]
    return max((count for count in wanted if count is not None), default=None)


def _whole_choice(fragment: Fragment | None, opening: _Opening) -> responses.CompletionChoice:
    if fragment is None or fragment.finish is None:
        raise Fault("engine_failure")
    logprobs: responses.Logprobs | None = fragment.logprobs
    if logprobs is not None and opening.logprobs is not None:
        logprobs = joined(opening.logprobs, logprobs)
    return {
        "index": fragment.index,
        "text": opening.text + fragment.text,
        "logprobs": logprobs,
        "finish_reason": fragment.finish.reason,
        "stop_reason": fragment.finish.stop,
        "prompt_logprobs": opening.prompt_logprobs,
    }


def _stream_choice(fragment: Fragment) -> responses.CompletionStreamChoice:
    finish = fragment.finish
    return {
        "index": fragment.index,
        "text": fragment.text,
        "logprobs": fragment.logprobs,
        "finish_reason": None if finish is None else finish.reason,
        "stop_reason": None if finish is None else finish.stop,
    }


def _usage(tally: Tally) -> responses.Usage:
    return {
        "prompt_tokens": tally.prompt_tokens,
        "total_tokens": tally.prompt_tokens + tally.completion_tokens,
        "completion_tokens": tally.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": tally.cached_tokens},
    }
