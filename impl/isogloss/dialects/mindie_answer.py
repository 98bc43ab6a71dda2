"""One chat completion while it is answered, in MindIE's form."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from isogloss_api.mindie import responses
from isogloss_spec.faults import Fault
from typing_extensions import TypedDict

from isogloss.dialects.chat_formats import AnswerForm
from isogloss.dialects.chat_logprobs import ChatTokenLogprob
from isogloss.dialects.chat_sequence import CallPart, ChatPiece, ChatSequence
from isogloss.dialects.engine_call import run
from isogloss.dialects.guides import Guided
from isogloss.dialects.mindie_usage import decode_times, prefill_time, usage
from isogloss.engine.api import Delta, Engine, Finish, GenerationRequest, Started, Timing


@dataclass(frozen=True, slots=True)
class Shown:
    """How a call wants its answer shown."""

    model: str
    """The name that the call used."""
    alternatives: int | None
    """Most likely tokens to show per token; None shows no log probabilities."""
    full_text: bool
    """Whether each chunk has the whole text so far."""


class _Head(TypedDict, closed=True):
    """What all chunks begin with."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str


@dataclass(frozen=True, slots=True)
class _Ended:
    """A sequence that is complete."""

    sequence: ChatSequence
    piece: ChatPiece
    finish: Finish


class Answer:
    """Asks the engine and writes down what it says.

    Raises Fault `engine_refused`, `overloaded`, `engine_failure` or that of a guide.
    """

    def __init__(
        self,
        engine: Engine,
        request: GenerationRequest,
        shown: Shown,
        form: AnswerForm,
        guided: Guided | None = None,
    ) -> None:
        """The request's id is the answer's; `guided` says where its guide comes from."""
        self._engine = engine
        self._request = request
        self._shown = shown
        self._guided = guided
        self._created = int(time.time())
        self._head: _Head = {
            "id": request.request_id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": shown.model,
        }
        self._cached = 0
        self._thinks = form.reasoning is not None
        self._sequences = [
            ChatSequence(index, shown.alternatives, form.parser(), include_stop=request.stopping.include_stop)
            for index in range(request.n)
        ]

    async def whole(self) -> responses.ChatCompletion:
        """The answer in one piece, the most likely sequence first."""
        async with aclosing(self._grown()) as grown:
            async for _ in grown:
                pass
        ended = [_ended(sequence) for sequence in self._sequences]
        if len(ended) > 1 and self._request.beams is None:  # those of a beam search come in order
            ended.sort(key=lambda one: one.sequence.logprob, reverse=True)
        longest = max(ended, key=lambda one: one.sequence.tokens)
        tokens, timing = longest.sequence.tokens, longest.finish.timing
        return {
            "id": self._request.request_id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._shown.model,
            "choices": [_choice(index, one) for index, one in enumerate(ended)],
            "usage": self._usage([one.sequence for one in ended], tokens, timing),
            "prefill_time": prefill_time(timing),
            "decode_time_arr": decode_times(timing, tokens),
        }

    async def chunks(self) -> AsyncGenerator[responses.ChatChunk, None]:
        """The answer in pieces: one per step and sequence, whether it shows something or not, as MindIE does."""
        async with aclosing(self._grown()) as grown:
            async for sequence in grown:
                yield self._chunk(sequence, sequence.take())

    async def _grown(self) -> AsyncGenerator[ChatSequence, None]:
        """Each sequence whenever it grew."""
        async with aclosing(run(self._engine, [self._request], self._guided)) as events:
            async for _, event in events:
                if isinstance(event, Delta):
                    sequence = self._sequences[event.choice]
                    sequence.add(event)
                    yield sequence
                elif isinstance(event, Started):
                    self._cached = event.cached_tokens

    def _chunk(self, sequence: ChatSequence, piece: ChatPiece) -> responses.ChatChunk:
        finish = piece.finish
        content = sequence.text if self._shown.full_text else piece.text
        choice: responses.ChunkChoice = {
            "index": sequence.index,
            "delta": _delta(content, piece),
            "logprobs": _logprobs(piece.logprobs),
            "finish_reason": sequence.finish_reason,
        }
        if finish is None:
            return {**self._head, "choices": [choice]}
        own = self._usage([sequence], sequence.tokens, finish.timing)
        if self._shown.full_text:
            return {**self._head, "full_text": content, "usage": own, "choices": [choice]}
        return {**self._head, "usage": own, "choices": [choice]}

    def _usage(self, sequences: Sequence[ChatSequence], longest: int, timing: Timing) -> responses.Usage:
        """What these sequences took."""
        completion = sum(sequence.tokens for sequence in sequences)
        reasoning = sum(sequence.reasoning_tokens for sequence in sequences) if self._thinks else None
        return usage(len(self._request.prompt), self._cached, completion, longest, timing, reasoning)


def _ended(sequence: ChatSequence) -> _Ended:
    piece = sequence.take()
    if piece.finish is None:
        raise Fault("engine_failure")
    return _Ended(sequence, piece, piece.finish)


def _choice(index: int, one: _Ended) -> responses.ChatChoice:
    reason = one.sequence.finish_reason
    assert reason is not None
    return {
        "index": index,
        "message": _message(one.piece),
        "logprobs": _logprobs(one.piece.logprobs),
        "finish_reason": reason,
    }


def _message(piece: ChatPiece) -> responses.AnswerMessage:
    message: responses.AnswerMessage = {
        "role": "assistant",
        "content": piece.text,
        "tool_calls": [_call(part) for part in piece.calls],
    }
    return {**message, "reasoning_content": piece.reasoning} if piece.reasoning else message


def _call(part: CallPart) -> responses.ToolCall:
    """A call whose parts all came at once."""
    assert part.id is not None
    assert part.name is not None
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}


def _delta(content: str, piece: ChatPiece) -> responses.ChunkDelta:
    delta: responses.ChunkDelta = {"role": "assistant", "content": content}
    if piece.reasoning:
        delta["reasoning_content"] = piece.reasoning
    if piece.calls:
        delta["tool_calls"] = [_call_delta(part) for part in piece.calls]
    return delta


def _call_delta(part: CallPart) -> responses.ToolCallDelta:
    if part.id is None or part.name is None:
        return {"index": part.index, "function": {"arguments": part.arguments}}
    return {
        "index": part.index,
        "id": part.id,
        "type": "function",
        "function": {"name": part.name, "arguments": part.arguments},
    }


def _logprobs(entries: list[ChatTokenLogprob] | None) -> responses.ChatLogprobs | None:
    return None if entries is None else {"content": list(entries)}
