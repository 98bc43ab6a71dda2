"""Turns away requests that could never be served, before they take a place."""

from __future__ import annotations

from dataclasses import dataclass

from isogloss.engine.api import EngineRefused, GenerationRequest
from isogloss.engine.tokens import TokenSource, TokenStream


@dataclass(frozen=True, slots=True)
class Capacity:
    """What fits at all."""

    context_length: int
    vocab_size: int
    cache_tokens: int
    """Positions that the whole KV cache holds."""


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
        capacity = self._capacity
        tokens = len(request.prompt) + request.stopping.max_tokens
        if not request.prompt or request.n < 1 or request.stopping.max_tokens < 1:
            return "a prompt, a choice and a token to generate are the least there is"
        if tokens > capacity.context_length:
            return f"{tokens} tokens of prompt and output exceed the context length"
        # The last token is sampled and never computed.
        if tokens - 1 > capacity.cache_tokens:
            return f"{tokens} tokens of prompt and output exceed the whole KV cache"
        ids = (*request.prompt, *request.sampling.logit_bias)
        if min(ids) < 0 or max(ids) >= capacity.vocab_size:
            return "a token id lies outside the vocabulary"
        return None
