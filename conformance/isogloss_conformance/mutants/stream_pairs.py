"""Mutants whose streams differ from the same calls without a stream, or differ from the plainest stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isogloss_conformance.mutants.streams import DONE, Chunk, each
from isogloss_conformance.mutants.wire import Got, Memory, Mutant, Sent

Json = Any
NIM, MINDIE = "nim/streams", "mindie/streams"


def ignored(field: str, killer: str, **also: Json) -> Mutant:
    """Ignores a field in streams; `also` are members that take its place."""

    def request(sent: Sent) -> Sent:
        return sent.having(**{field: ...}, **also) if sent.json.get("stream") and field in sent.json else sent

    return Mutant(f"{field} is ignored in streams", killer, request)


def _choices(change: Callable[[Memory, Chunk], Chunk]) -> Callable[[Memory, Chunk], Chunk]:
    return lambda memory, chunk: {**chunk, "choices": [change(memory, choice) for choice in chunk.get("choices", [])]}


def _logprobs(**changed: Callable[[list[Json]], list[Json]]) -> Callable[[Memory, Chunk], Chunk]:
    """Changes lists of the log probabilities."""

    def change(memory: Memory, choice: Chunk) -> Chunk:
        logprobs = choice.get("logprobs")
        if not logprobs:
            return choice
        made = {name: alter(logprobs[name]) for name, alter in changed.items()}
        return {**choice, "logprobs": {**logprobs, **made}}

    return _choices(change)


def _lower(choice: Chunk) -> Chunk:
    """One value lower than it is."""
    items = (choice.get("logprobs") or {}).get("content") or []
    lower = [{**item, "logprob": item["logprob"] - 0.1} for item in items]
    return {**choice, "logprobs": {"content": lower}} if items else choice


def _stops(memory: Memory, choice: Chunk) -> Chunk:
    return {**choice, "finish_reason": "stop"} if choice.get("finish_reason") == "length" else choice


def _cut(memory: Memory, choice: Chunk) -> Chunk:
    return {**choice, "finish_reason": "length"} if choice.get("finish_reason") == "stop" else choice


def _crossed(memory: Memory, choice: Chunk) -> Chunk:
    """The texts of two choices change places half way."""
    crosses = memory.request.json.get("n") == 2 and memory.events >= 6
    return {**choice, "index": 1 - choice["index"]} if crosses and choice["index"] < 2 else choice


def _first_prompt(memory: Memory, choice: Chunk) -> Chunk:
    """Choices of later prompts count from 0 again."""
    return {**choice, "index": choice["index"] % 2} if isinstance(memory.request.json.get("prompt"), list) else choice


def _when(field: str, name: str, killer: str, change: Callable[[str], list[str]]) -> Mutant:
    """Changes the terminator of streams that were asked for with a field."""

    def event(memory: Memory, text: str) -> list[str]:
        return change(text) if text == DONE and field in memory.request.json else [text]

    return Mutant(name, killer, event=event)


def _extra(field: str) -> Callable[[Memory, Chunk], Chunk]:
    return lambda memory, chunk: {**chunk, "extra": 1} if field in memory.request.json else chunk


def _no_usage(memory: Memory, chunk: Chunk) -> Chunk:
    return {name: value for name, value in chunk.items() if name != "usage"}


def _first_usage(memory: Memory, chunk: Chunk) -> Chunk:
    """Of several prompts only the first is counted."""
    usage, prompts = chunk.get("usage"), memory.request.json.get("prompt")
    if not usage or not isinstance(prompts, list):
        return chunk
    counts = {name: value // len(prompts) for name, value in usage.items() if isinstance(value, int)}
    return {**chunk, "usage": {**usage, **counts}}


def _usage_once(sent: Sent) -> Sent:
    asked = sent.json.get("stream_options")
    return sent.having(stream_options={"include_usage": True}) if asked else sent


def _final_usage(memory: Memory, chunk: Chunk) -> Chunk:
    """What all tokens come to, from the first chunk on."""
    usage = chunk.get("usage")
    return {**chunk, "usage": {**usage, "completion_tokens": memory.request.json["max_tokens"]}} if usage else chunk


def _usage(**changed: Callable[[int], int]) -> Callable[[Memory, Chunk], Chunk]:
    def change(memory: Memory, chunk: Chunk) -> Chunk:
        usage = chunk.get("usage")
        if not usage:
            return chunk
        return {**chunk, "usage": {**usage, **{name: alter(usage[name]) for name, alter in changed.items()}}}

    return change


def _as_stream(status: int, word: str = "") -> Callable[[Sent, Got], Got]:
    """Tells errors of one status, about a word, in a stream."""

    def answer(sent: Sent, got: Got) -> Got:
        if got.status != status or not sent.json.get("stream") or word not in got.body.decode():
            return got
        return Got(200, {"content-type": "text/event-stream"}, b"data: " + got.body + f"\n\n{DONE}\n\n".encode())

    return answer


def _unbounded(sent: Sent) -> Sent:
    """Takes any temperature in streams."""
    temperature = sent.json.get("temperature")
    too_hot = isinstance(temperature, int | float) and temperature > 2
    return sent.having(temperature=2) if sent.json.get("stream") and too_hot else sent


STREAM_PAIRS = (
    *(ignored(field, f"{NIM}/same/{field}") for field in ("seed", "top_k", "top_p", "min_p", "logit_bias")),
    *(ignored(field, f"{NIM}/same/{field}") for field in ("presence_penalty", "frequency_penalty")),
    *(ignored(field, f"{NIM}/same/{field}") for field in ("repetition_penalty", "min_tokens", "ignore_eos")),
    *(ignored(field, f"{NIM}/same/{field}") for field in ("guided_choice", "response_format")),
    *(ignored(field, f"{MINDIE}/same/{field}") for field in ("presence_penalty", "frequency_penalty")),
    ignored("return_tokens_as_token_ids", f"{NIM}/same/token_names"),
    ignored("return_token_ids", "acs/streams/same/token_ids"),
    ignored("stop_token_ids", f"{MINDIE}/same/stop_token_ids"),
    ignored("include_stop_str_in_output", f"{NIM}/stop"),
    each("values of streams are made up", f"{NIM}/logprobs", _logprobs(token_logprobs=lambda old: [-1.0] * len(old))),
    each("alternatives are lost", f"{NIM}/logprobs", _logprobs(top_logprobs=lambda old: [None] * len(old))),
    each("alternatives are made up", f"{NIM}/logprobs", _logprobs(top_logprobs=lambda old: [{"x": -1.0}] * len(old))),
    each("all offsets are 0", f"{NIM}/logprobs", _logprobs(text_offset=lambda old: [0] * len(old))),
    each("values of chats are off", f"{MINDIE}/logprobs", _choices(lambda memory, choice: _lower(choice))),
    each("what was cut says stop", f"{NIM}/end", _choices(_stops)),
    each("what ended says length", f"{NIM}/end", _choices(_cut)),
    each("choices cross", f"{NIM}/same/choices", _choices(_crossed)),
    each("each prompt counts choices from 0", f"{NIM}/same/prompts", _choices(_first_prompt)),
    _when("n", "[DONE] for each choice", f"{NIM}/choices", lambda text: [text, text]),
    _when("stream_options", "no [DONE] behind usage", f"{NIM}/usage_asked", lambda text: []),
    _when("tools", "no [DONE] behind calls", f"{MINDIE}/tool_calls", lambda text: []),
    each("an undeclared member beside usage", f"{NIM}/usage_asked", _extra("stream_options")),
    each("usage of one prompt", f"{NIM}/usage_asked", _first_usage),
    Mutant("usage comes only once", f"{NIM}/usage_so_far", _usage_once),
    each("usage does not grow", "acs/streams/usage_so_far", _final_usage),
    each("no usage in chats", f"{MINDIE}/usage", _no_usage),
    each("usage of chats counts one too many", f"{MINDIE}/usage", _usage(completion_tokens=lambda old: old + 1)),
    each("usage of chats forgets the prompt", f"{MINDIE}/usage", _usage(prompt_tokens=lambda old: 0)),
    Mutant("an unknown model is told in a stream", f"{NIM}/early_error", answer=_as_stream(404)),
    Mutant("a long context is told in a stream", f"{NIM}/early_error", answer=_as_stream(400, '"max_tokens"')),
    Mutant("streams take any temperature", f"{NIM}/early_error", _unbounded),
)
