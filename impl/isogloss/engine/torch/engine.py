"""The torch engine: loader, executor, core, stepper and text stage put together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from isogloss.engine.api import (
    EngineFailure,
    EngineRefused,
    EngineStatus,
    Event,
    GenerationRequest,
    Guide,
    ModelCard,
    Tokenizer,
)
from isogloss.engine.chat.registry import TOOL_FORMATS, detect_reasoning_format, detect_tool_format
from isogloss.engine.guides.compiler import GuideCompiler
from isogloss.engine.guides.vocabulary import Vocabulary
from isogloss.engine.media import MediaProcessor
from isogloss.engine.text import TextStage
from isogloss.engine.tokenizer import HFTokenizer, without_limits
from isogloss.engine.torch.core import EngineCore
from isogloss.engine.torch.executor import Executor
from isogloss.engine.torch.gate import Capacity, Gate
from isogloss.engine.torch.loading import LoadedModel, build_executor, load_model
from isogloss.engine.torch.multimodal.processor import Processor
from isogloss.engine.torch.scheduler import Limits
from isogloss.engine.torch.settings import AUTO, TorchSettings
from isogloss.engine.torch.stepper import Stepper, StepperSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What exists between start and stop."""

    card: ModelCard
    tokenizer: HFTokenizer
    stepper: Stepper
    text: TextStage
    guides: GuideCompiler | None
    """None if llguidance does not know the tokenizer."""
    processor: Processor | None


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
    def processor(self) -> MediaProcessor | None:
        """Takes media into prompts; None if the model takes texts alone."""
        return self._started.processor

    @property
    def features(self) -> frozenset[str]:
        """What this engine serves of the features that documents mark."""
        parts = self._started
        kinds = frozenset() if parts.processor is None else parts.processor.kinds
        served = {
            "beam": True,
            "guided": parts.guides is not None,
            "suffix": parts.tokenizer.infill is not None,
            "tools": parts.card.tool_format is not None,
        }
        return kinds | {name for name, there in served.items() if there}

    async def start(self) -> None:
        """Load the model and begin to work.

        Raises ModelNotFound, DeviceUnavailableError, AdapterError, or UnsupportedModelError for a model that this
        engine would not compute right.
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
            if parts.guides is not None:
                parts.guides.close()

    def status(self) -> EngineStatus:
        """A snapshot."""
        if self._parts is None:
            return EngineStatus(ready=False, running=0, waiting=0)
        return self._parts.stepper.status()

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        """Events of one request."""
        parts = self._started
        if request.guide is not None:
            request = replace(request, guide=await _ready(parts.guides, request.guide, request.beams))
        async with aclosing(parts.text.generate(request)) as events:
            async for event in events:
                yield event


async def _ready(guides: GuideCompiler | None, guide: Guide, beams: int | None) -> Guide:
    if guides is None:
        raise EngineRefused("guides do not work with this model's tokenizer")
    if beams is not None:
        raise EngineRefused("beam search takes no guide")
    return await guides.ready(guide)


def assemble(loaded: LoadedModel, executor: Executor, settings: TorchSettings) -> _Parts:
    """Put an engine together around an executor."""
    limits = Limits(settings.max_num_seqs, settings.prefill_budget)
    stepper = Stepper(
        EngineCore(executor, limits),
        StepperSettings(settings.max_waiting, settings.threads, loaded.eos),
    )
    card = _card(loaded, executor, settings)
    tokenizer = HFTokenizer(
        loaded.tokenizer,
        eos_token_ids=loaded.eos,
        vocab_size=executor.vocab_size,
        tool_format=None if card.tool_format is None else TOOL_FORMATS[card.tool_format],
    )
    cache_tokens = (executor.block_count - 1) * executor.block_size
    capacity = Capacity(
        loaded.context_length, executor.vocab_size, cache_tokens, executor.block_size, frozenset(settings.adapters)
    )
    text = TextStage(tokenizer, Gate(stepper, capacity))
    processor = None if loaded.family is None else Processor(loaded.family)
    return _Parts(card, tokenizer, stepper, text, _guides(loaded, executor), processor)


def _guides(loaded: LoadedModel, executor: Executor) -> GuideCompiler | None:
    eos = tuple(sorted(loaded.eos))
    back_end = getattr(loaded.tokenizer, "backend_tokenizer", None)
    if back_end is None or not eos:
        return None
    try:
        guides = GuideCompiler(Vocabulary(executor.vocab_size, eos, without_limits(back_end).to_str()))
        guides.load()
    # What llguidance raises for a tokenizer of another kind is not written down.
    except Exception as error:
        log.warning("guided decoding is off: %s", error)
        return None
    return guides


def _card(loaded: LoadedModel, executor: Executor, settings: TorchSettings) -> ModelCard:
    return ModelCard(
        name=loaded.name,
        context_length=loaded.context_length,
        vocab_size=executor.vocab_size,
        layers=loaded.config.num_hidden_layers,
        hidden_size=loaded.config.hidden_size,
        created=int(time.time()),
        chat_template=_template(loaded),
        top_k=loaded.top_k,
        adapters=tuple(settings.adapters),
        tool_format=_chosen(settings.tool_format, loaded, detect_tool_format),
        reasoning_format=_chosen(settings.reasoning_format, loaded, detect_reasoning_format),
    )


def _chosen(setting: str | None, loaded: LoadedModel, detect: Callable[[str], str | None]) -> str | None:
    """The name of a format: the one that was set, or the first that a template of the model shows."""
    if setting != AUTO:
        return setting
    template = loaded.tokenizer.chat_template
    texts = template.values() if isinstance(template, dict) else [template or ""]
    return next((name for name in map(detect, texts) if name is not None), None)


def _template(loaded: LoadedModel) -> str | None:
    template = loaded.tokenizer.chat_template
    return template if isinstance(template, str) else None
