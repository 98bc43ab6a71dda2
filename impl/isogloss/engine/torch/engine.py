"""The torch engine: loader, executor, core, stepper and text stage put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from isogloss.engine.api import (
    EngineFailure,
    EngineStatus,
    Event,
    GenerationRequest,
    ModelCard,
    Tokenizer,
)
from isogloss.engine.text import TextStage
from isogloss.engine.tokenizer import HFTokenizer
from isogloss.engine.torch.core import EngineCore
from isogloss.engine.torch.executor import Executor
from isogloss.engine.torch.gate import Capacity, Gate
from isogloss.engine.torch.loading import LoadedModel, build_executor, load_model
from isogloss.engine.torch.scheduler import Limits
from isogloss.engine.torch.settings import TorchSettings
from isogloss.engine.torch.stepper import Stepper, StepperSettings


@dataclass(frozen=True, slots=True)
class _Parts:
    """What exists between start and stop."""

    card: ModelCard
    tokenizer: HFTokenizer
    stepper: Stepper
    text: TextStage


class TorchEngine:
    """Implements `Engine` with a transformers model in this process."""

    def __init__(self, settings: TorchSettings) -> None:
        self._settings = settings
        self._parts: _Parts | None = None

    @property
    def _started(self) -> _Parts:
        if self._parts is None:
            raise EngineFailure("the engine is not started")
        return self._parts

    @property
    def card(self) -> ModelCard:
        """What is served. There once the engine is started."""
        return self._started.card

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer. There once the engine is started."""
        return self._started.tokenizer

    @property
    def features(self) -> frozenset[str]:
        """None of the features that documents mark."""
        return frozenset()

    async def start(self) -> None:
        """Load the model and begin to work.

        Raises ModelNotFound, DeviceUnavailableError, or UnsupportedModelError for a model that
        this engine would not compute right.
        """
        self._parts = await asyncio.to_thread(self._load)
        self._parts.stepper.start()

    def _load(self) -> _Parts:
        loaded = load_model(self._settings)
        return assemble(loaded, build_executor(loaded, self._settings), self._settings)

    async def stop(self) -> None:
        """End running requests with EngineFailure and release the model."""
        parts, self._parts = self._parts, None
        if parts is not None:
            await asyncio.to_thread(parts.stepper.stop)

    def status(self) -> EngineStatus:
        """A snapshot."""
        if self._parts is None:
            return EngineStatus(ready=False, running=0, waiting=0)
        return self._parts.stepper.status()

    def generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        """Events of one request."""
        return self._started.text.generate(request)


def assemble(loaded: LoadedModel, executor: Executor, settings: TorchSettings) -> _Parts:
    """Put an engine together around an executor."""
    limits = Limits(settings.max_num_seqs, settings.prefill_budget)
    stepper = Stepper(
        EngineCore(executor, limits),
        StepperSettings(settings.max_waiting, settings.threads, loaded.eos),
    )
    tokenizer = HFTokenizer(loaded.tokenizer, eos_token_ids=loaded.eos, vocab_size=executor.vocab_size)
    cache_tokens = (executor.block_count - 1) * executor.block_size
    capacity = Capacity(loaded.context_length, executor.vocab_size, cache_tokens)
    text = TextStage(tokenizer, Gate(stepper, capacity))
    return _Parts(_card(loaded, executor), tokenizer, stepper, text)


def _card(loaded: LoadedModel, executor: Executor) -> ModelCard:
    return ModelCard(
        name=loaded.name,
        context_length=loaded.context_length,
        vocab_size=executor.vocab_size,
        layers=loaded.config.num_hidden_layers,
        hidden_size=loaded.config.hidden_size,
        created=int(time.time()),
        chat_template=_template(loaded),
        top_k=loaded.top_k,
    )


def _template(loaded: LoadedModel) -> str | None:
    template = loaded.tokenizer.chat_template
    return template if isinstance(template, str) else None
