"""One chat completion while it is answered, in MindIE's form."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from isogloss_api.mindie import responses
from isogloss_spec.faults import Fault
from typing_extensions import TypedDict

from isogloss.dialects.chat_logprobs import ChatTokenLogprob
from isogloss.dialects.chat_sequence import ChatPiece, ChatSequence
from isogloss.dialects.engine_call import run
from isogloss.dialects.guides import Guided
from isogloss.dialects.mindie_usage import decode_times, prefill_time, usage
from isogloss.engine.api import Delta, Engine, Finish, GenerationRequest, Started


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

    def __init__(self, engine: Engine, request: GenerationRequest, shown: Shown, guided: Guided | None = None) -> None:
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
        self._sequences = [ChatSequence(index, shown.alternatives) for index in range(request.n)]

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
        completion = sum(one.sequence.tokens for one in ended)
        return {
            "id": self._request.request_id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._shown.model,
            "choices": [_choice(index, one) for index, one in enumerate(ended)],
            "usage": usage(len(self._request.prompt), self._cached, completion, tokens, timing),
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
            "delta": {"role": "assistant", "content": content},
            "logprobs": _logprobs(piece.logprobs),
            "finish_reason": None if finish is None else finish.reason,
        }
        if finish is None:
            return {**self._head, "choices": [choice]}
        own = self._usage_of(sequence, finish)
        if self._shown.full_text:
            return {**self._head, "full_text": content, "usage": own, "choices": [choice]}
        return {**self._head, "usage": own, "choices": [choice]}

    def _usage_of(self, sequence: ChatSequence, finish: Finish) -> responses.Usage:
        """What one sequence took."""
        tokens = sequence.tokens
        return usage(len(self._request.prompt), self._cached, tokens, tokens, finish.timing)


def _ended(sequence: ChatSequence) -> _Ended:
    piece = sequence.take()
    if piece.finish is None:
        raise Fault("engine_failure")
    return _Ended(sequence, piece, piece.finish)


def _choice(index: int, one: _Ended) -> responses.ChatChoice:
    return {
        "index": index,
        "message": {"role": "assistant", "content": one.piece.text, "tool_calls": []},
        "logprobs": _logprobs(one.piece.logprobs),
        "finish_reason": one.finish.reason,
    }


def _logprobs(entries: list[ChatTokenLogprob] | None) -> responses.ChatLogprobs | None:
    return None if entries is None else {"content": list(entries)}
