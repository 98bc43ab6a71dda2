"""Where the scripted engine's tokens come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakSet

from isogloss.engine.api import EngineFailure, EngineRefused, GenerationRequest
from isogloss.engine.scripted.admission import Admission
from isogloss.engine.scripted.model import TinyModel, first_state
from isogloss.engine.scripted.script import Script
from isogloss.engine.scripted.search import FoundSequence, found_sequences
from isogloss.engine.scripted.sequence import ScriptedSequence
from isogloss.engine.scripted.stream import ScriptedStream, Totals, Work
from isogloss.engine.scripted.vocabulary import VOCAB_SIZE, ScriptTokens


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an engine takes on."""

    context_length: int = 4096
    """Tokens of prompt and answer together."""
    max_num_seqs: int = 256
    """Choices that run at once."""
    max_waiting: int = 1024
    """Requests that may wait; more are EngineOverloaded."""


class ScriptedPool:
    """All requests of one engine, waiting and running."""

    def __init__(self, model: TinyModel, limits: Limits) -> None:
        self.admission = Admission(limits.max_num_seqs, limits.max_waiting)
        self.totals = Totals()
        self._model = model
        self._context_length = limits.context_length
        self._streams: WeakSet[ScriptedStream] = WeakSet()

    def open(self, request: GenerationRequest, source: ScriptedSource) -> ScriptedStream:
        """Queue a request.

        Raises EngineRefused for a prompt that is empty, too long or not of the vocabulary, and
        EngineOverloaded if too many wait.
        """
        self._check(request.prompt)
        place = self.admission.enter(request.n, request.priority)
        stream = ScriptedStream(self._work(request, source), self.admission, place, self.totals)
        self._streams.add(stream)
        return stream

    def fail(self, failure: EngineFailure) -> None:
        """End all requests."""
        for stream in list(self._streams):
            stream.fail(failure)

    def _check(self, prompt: Sequence[int]) -> None:
        if not prompt:
            raise EngineRefused("the prompt is empty")
        if len(prompt) >= self._context_length:
            raise EngineRefused("the prompt leaves no room in the context")
        if min(prompt) < 0 or max(prompt) >= VOCAB_SIZE:
            raise EngineRefused("the prompt has tokens outside the vocabulary")

    def _work(self, request: GenerationRequest, source: ScriptedSource) -> Work:
        model, scores = self._model, None
        if request.prompt_logprobs is not None:
            scores = model.prompt_scores(request.prompt, request.prompt_logprobs, first_state(request.media))
        limit = min(request.stopping.max_tokens, self._context_length - len(request.prompt))
        sequences: Sequence[ScriptedSequence | FoundSequence]
        if request.beams is not None and source.tokens is None:
            sequences = found_sequences(model, request, limit)
        else:
            sequences = [
                ScriptedSequence(model, request, choice, source.script, source.tokens, limit)
                for choice in range(request.n)
            ]
        at_once = limit if request.beams is not None else None
        return Work(sequences, source.script, len(request.prompt), scores, at_once)


@dataclass(frozen=True, slots=True)
class ScriptedSource:
    """A token source for the request that brought this script."""

    pool: ScriptedPool
    script: Script
    tokens: ScriptTokens | None
    """None lets the model choose."""

    def open(self, request: GenerationRequest) -> ScriptedStream:
        """Queue the request."""
        return self.pool.open(request, self)
