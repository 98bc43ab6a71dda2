"""Turns away requests that could never be served, before they take a place."""

from __future__ import annotations

from dataclasses import dataclass

from isogloss.engine.api import EngineRefused, GenerationRequest
from isogloss.engine.tokens import TokenSource, TokenStream
from isogloss.engine.torch.multimodal.placed import TorchMedia


@dataclass(frozen=True, slots=True)
class Capacity:
    """What fits at all."""

    context_length: int
    vocab_size: int
    cache_tokens: int
    """Positions that the whole KV cache holds."""
    block_size: int
    """Positions that one block of it holds."""
    adapters: frozenset[str] = frozenset()


class Gate:
    """Implements `TokenSource` before another one."""

    def __init__(self, source: TokenSource, capacity: Capacity) -> None:
        self._source = source
        self._capacity = capacity

    def open(self, request: GenerationRequest) -> TokenStream:
        """Queue a request. Raises EngineRefused, and EngineOverloaded from behind the gate."""
        fault = self._fault(request)
        if fault is not None:
            raise EngineRefused(fault)
        return self._source.open(request)

    def _fault(self, request: GenerationRequest) -> str | None:
        faults = (self._size_fault, self._name_fault, self._media_fault, self._beam_fault)
        return next((fault for find in faults if (fault := find(request)) is not None), None)

    def _size_fault(self, request: GenerationRequest) -> str | None:
        capacity = self._capacity
        tokens = len(request.prompt) + request.stopping.max_tokens
        if not request.prompt or request.n < 1 or request.stopping.max_tokens < 1:
            return "a prompt, a choice and a token to generate are the least there is"
        if tokens > capacity.context_length:
            return f"{tokens} tokens of prompt and output exceed the context length"
        # The last token is sampled and never computed.
        if tokens - 1 > capacity.cache_tokens:
            return f"{tokens} tokens of prompt and output exceed the whole KV cache"
        return None

    def _name_fault(self, request: GenerationRequest) -> str | None:
        ids = (*request.prompt, *request.sampling.logit_bias)
        if min(ids) < 0 or max(ids) >= self._capacity.vocab_size:
            return "a token id lies outside the vocabulary"
        if request.adapter is not None and request.adapter not in self._capacity.adapters:
            return "there is no adapter of this name"
        return None

    def _media_fault(self, request: GenerationRequest) -> str | None:
        media = request.media
        if media is None:
            return None
        if not isinstance(media, TorchMedia):
            return "the media were made ready for another engine"
        if media.length != len(request.prompt):
            return "the prompt is not the one that came with its media"
        return None

    def _beam_fault(self, request: GenerationRequest) -> str | None:
        capacity, stopping, beams = self._capacity, request.stopping, request.beams
        if beams is None:
            return None
        if not request.n <= beams <= capacity.vocab_size:
            return "there must be as many beams as choices, and no more than tokens in the vocabulary"
        if stopping.stop or stopping.stop_token_ids:
            return "beam search takes neither stop strings nor stop tokens"
        # All beams must fit at once: each has what it generates, and blocks that it began, for itself.
        own = stopping.max_tokens + 3 * capacity.block_size
        if len(request.prompt) + beams * own > capacity.cache_tokens:
            return f"{beams} beams exceed the whole KV cache"
        return None
