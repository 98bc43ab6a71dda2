"""Fields that dialects share, as the engine wants them. Each function takes any dialect's effective request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from typing_extensions import ReadOnly, TypedDict

from isogloss.engine.api import Sampling, Stopping, Tokenizer


class OpenAISampling(TypedDict):
    """How to sample, in OpenAI's fields."""

    temperature: ReadOnly[float]
    top_p: ReadOnly[float]
    presence_penalty: ReadOnly[float]
    frequency_penalty: ReadOnly[float]
    seed: ReadOnly[int | None]


class VllmSampling(OpenAISampling):
    """How to sample, in vLLM's fields."""

    top_k: ReadOnly[int]
    min_p: ReadOnly[float]
    repetition_penalty: ReadOnly[float]


class VllmStopping(TypedDict):
    """When to stop, in vLLM's fields."""

    max_tokens: ReadOnly[int]
    min_tokens: ReadOnly[int]
    stop: ReadOnly[str | list[str] | None]
    include_stop_str_in_output: ReadOnly[bool]
    ignore_eos: ReadOnly[bool]


class UsageOptions(TypedDict):
    """What a stream says about usage, in OpenAI's field."""

    include_usage: ReadOnly[bool]


class VllmUsageOptions(UsageOptions):
    """The same with vLLM's field."""

    continuous_usage_stats: ReadOnly[bool]


def openai_sampling(eff: OpenAISampling, logit_bias: Mapping[str, float] | None = None) -> Sampling:
    """Sampling by OpenAI's fields; keys of `logit_bias` are token ids in decimal."""
    return Sampling(
        temperature=eff["temperature"],
        top_p=eff["top_p"],
        presence_penalty=eff["presence_penalty"],
        frequency_penalty=eff["frequency_penalty"],
        logit_bias={int(key): value for key, value in (logit_bias or {}).items()},
        seed=eff["seed"],
    )


def vllm_sampling(eff: VllmSampling, logit_bias: Mapping[str, float] | None = None) -> Sampling:
    """Sampling by OpenAI's and vLLM's fields; a `top_k` of -1 keeps all tokens."""
    return replace(
        openai_sampling(eff, logit_bias),
        top_k=max(eff["top_k"], 0),
        min_p=eff["min_p"],
        repetition_penalty=eff["repetition_penalty"],
    )


def vllm_stopping(eff: VllmStopping) -> Stopping:
    """Stopping by vLLM's fields."""
    return Stopping(
        max_tokens=eff["max_tokens"],
        min_tokens=eff["min_tokens"],
        stop=stop_texts(eff["stop"]),
        include_stop=eff["include_stop_str_in_output"],
        ignore_eos=eff["ignore_eos"],
    )


def infill_stopping(stopping: Stopping, suffix: str | None, tokenizer: Tokenizer) -> Stopping:
    """Ends also at the tokens with which a model ends what it fills in."""
    infill = tokenizer.infill
    if not suffix or infill is None or stopping.ignore_eos:
        return stopping
    return replace(stopping, stop_token_ids=stopping.stop_token_ids | infill.stop_ids)


def stop_texts(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """Stop texts, however many there are."""
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def includes_usage(options: UsageOptions | None) -> bool:
    """Whether a stream ends with the usage of the whole request."""
    return options is not None and options["include_usage"]


def counts_usage(options: VllmUsageOptions | None) -> bool:
    """Whether every chunk says the usage so far."""
    return options is not None and options["include_usage"] and options["continuous_usage_stats"]
