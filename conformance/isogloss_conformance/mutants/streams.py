"""Mutants that change a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from isogloss_conformance.mutants.wire import Got, Memory, Mutant, Sent

Json = Any
Chunk = dict[str, Json]
S = "nim/streams"
DONE = "data: [DONE]"


def _chunk(event: str) -> Chunk | None:
    """The chunk that an event carries; None for the terminator and comments."""
    if not event.startswith("data: {"):
        return None
    found: Chunk = json.loads(event.removeprefix("data: "))
    return found


def _event(chunk: Chunk) -> str:
    return "data: " + json.dumps(chunk)


def each(name: str, killer: str, change: Callable[[Memory, Chunk], Chunk | None]) -> Mutant:
    """Changes each chunk, or drops it."""

    def event(memory: Memory, text: str) -> list[str]:
        chunk = _chunk(text)
        if chunk is None:
            return [text]
        changed = change(memory, chunk)
        return [] if changed is None else [_event(changed)]

    return Mutant(name, killer, event=event)


def _choices(change: Callable[[Chunk], Chunk]) -> Callable[[Memory, Chunk], Chunk]:
    """Changes each choice of a chunk."""
    return lambda memory, chunk: {**chunk, "choices": [change(choice) for choice in chunk.get("choices", [])]}


def _at_end(name: str, killer: str, made: Callable[[str], list[str]]) -> Mutant:
    """Puts something in the place of the terminator."""
    return Mutant(name, killer, event=lambda memory, text: made(text) if text == DONE else [text])


def _new_id(memory: Memory, chunk: Chunk) -> Chunk:
    return {**chunk, "id": f"cmpl-{memory.events:032x}"}


def _with_usage(memory: Memory, chunk: Chunk) -> Chunk:
    return {**chunk, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def _usage_beside_choices(memory: Memory, chunk: Chunk) -> Chunk:
    choice = {"index": 0, "text": "", "logprobs": None, "finish_reason": None}
    return {**chunk, "choices": [choice]} if chunk.get("usage") else chunk


def _more_usage(memory: Memory, chunk: Chunk) -> Chunk:
    usage = chunk.get("usage")
    return {**chunk, "usage": {**usage, "completion_tokens": usage["completion_tokens"] + 1}} if usage else chunk


def _no_error(memory: Memory, chunk: Chunk) -> Chunk | None:
    return None if "choices" not in chunk else chunk


def _other_error(memory: Memory, chunk: Chunk) -> Chunk | None:
    return chunk if "choices" in chunk else {**chunk, "type": "Oops"}


def _falling(choice: Chunk) -> Chunk:
    logprobs = choice.get("logprobs")
    if not logprobs:
        return choice
    return {**choice, "logprobs": {**logprobs, "text_offset": [-offset for offset in logprobs["text_offset"]]}}


def _no_stop_in_streams(sent: Sent) -> Sent:
    return sent.having(stop=...) if sent.json.get("stream") else sent


def _one_choice_in_streams(sent: Sent) -> Sent:
    return sent.having(n=1) if sent.json.get("stream") and "n" in sent.json else sent


def _error_as_stream(sent: Sent, got: Got) -> Got:
    """Knows the error before the first token, and tells it in a stream."""
    if got.status < 400 or not sent.json.get("stream"):
        return got
    return Got(200, {"content-type": "text/event-stream"}, f"{_event(got.json)}\n\n{DONE}\n\n".encode())


STREAMS = (
    _at_end("no [DONE]", f"{S}/terminator", lambda text: []),
    _at_end("[DONE] twice", f"{S}/terminator", lambda text: [text, text]),
    _at_end("a chunk behind [DONE]", f"{S}/terminator", lambda text: [text, "data: {}"]),
    Mutant("one newline between events", f"{S}/framing", separator="\n"),
    Mutant("the content type is JSON", f"{S}/framing", stream_type="application/json"),
    Mutant("all events leave at the end", f"{S}/at_once", buffers=True),
    Mutant("a caller that left keeps its slot", f"{S}/hang_up", holds=True),
    each("the id changes", f"{S}/constant", _new_id),
    each("created changes", f"{S}/constant", lambda m, chunk: {**chunk, "created": m.events}),
    each("the model changes", f"{S}/constant", lambda m, chunk: {**chunk, "model": "x"} if m.events else chunk),
    each("a member that nobody declared", f"{S}/chunks", lambda m, chunk: {**chunk, "extra": 1}),
    each(
        "every chunk has a finish reason", f"{S}/finish", _choices(lambda choice: {**choice, "finish_reason": "stop"})
    ),
    each("no chunk has a finish reason", f"{S}/finish", _choices(lambda choice: {**choice, "finish_reason": None})),
    each("all choices have one index", f"{S}/choices", _choices(lambda choice: {**choice, "index": 0})),
    each("usage without being asked", f"{S}/usage_unasked", _with_usage),
    each("usage beside choices", f"{S}/usage_asked", _usage_beside_choices),
    each("usage counts one too many", f"{S}/usage_asked", _more_usage),
    each("usage is dropped", f"{S}/usage_asked", lambda m, chunk: None if chunk.get("usage") else chunk),
    each("the first chunk is lost", f"{S}/text", lambda m, chunk: chunk if m.events else None),
    each("texts lose their blanks", f"{S}/text", _choices(lambda choice: {**choice, "text": choice["text"].strip()})),
    each("offsets fall", f"{S}/logprobs", _choices(_falling)),
    each("log probabilities are dropped", f"{S}/logprobs", _choices(lambda choice: {**choice, "logprobs": None})),
    each("a late error is dropped", f"{S}/late_error", _no_error),
    each("a late error has another type", f"{S}/late_error", _other_error),
    each(
        "half characters leave",
        f"{S}/characters",
        _choices(lambda choice: {**choice, "text": choice["text"].replace("😀", "\ufffd")}),
    ),
    Mutant("stop texts leak", f"{S}/stop", _no_stop_in_streams),
    Mutant("one choice whatever n says", f"{S}/choices", _one_choice_in_streams),
    Mutant("an early error is a stream", f"{S}/early_error", answer=_error_as_stream),
)
