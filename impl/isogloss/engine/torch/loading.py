"""Weights and tokenizer from a folder, ready for an executor. Never from a hub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMultimodalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from isogloss.engine.torch.adapters import AdapterError, load_adapter
from isogloss.engine.torch.device import choose_device, choose_dtype, free_memory
from isogloss.engine.torch.multimodal.family import FAMILIES, Family
from isogloss.engine.torch.settings import TorchSettings
from isogloss.engine.torch.transformers_executor import PreparedModel, TransformersExecutor
from isogloss.models import resolve_model

GIB = 2**30
CPU_CACHE_LIMIT = 4 * GIB


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model of transformers with what belongs to it."""

    name: str
    model: Any
    tokenizer: Any
    context_length: int
    family: Family | None = None
    """What there is to know of its media; None for a model that takes texts alone."""

    @property
    def config(self) -> Any:
        """Configuration of the language model, also where it is a part of a larger one."""
        return self.model.config.get_text_config()

    @property
    def top_k(self) -> int | None:
        """How many tokens the model says to sample from, if it does."""
        own: int | None = self.model.generation_config.top_k
        value = getattr(self.config, "top_k", None) if own is None else own
        return value if isinstance(value, int) and value >= 0 else None

    @property
    def eos(self) -> frozenset[int]:
        """Tokens that end a text, wherever the model says so."""
        return _ids(
            self.model.generation_config.eos_token_id,
            getattr(self.config, "eos_token_id", None),
            self.tokenizer.eos_token_id,
        )


def load_model(settings: TorchSettings) -> LoadedModel:
    """Raises ModelNotFound, DeviceUnavailableError, UnsupportedModelError, and what transformers raises for a broken
    folder."""
    transformers_logging.disable_progress_bar()
    resolved = resolve_model(settings.model, settings.cache_dir)
    device = choose_device(settings.device)
    tokenizer = AutoTokenizer.from_pretrained(resolved.folder, local_files_only=True)
    config = AutoConfig.from_pretrained(resolved.folder, local_files_only=True)
    length = _context_length(config.get_text_config(), settings.max_model_len)
    make = FAMILIES.get(config.model_type)
    family = None if make is None else make(config, resolved.folder, length)
    if family is not None and family.chat_template is not None:
        tokenizer.chat_template = family.chat_template
    auto = AutoModelForCausalLM if family is None else AutoModelForMultimodalLM
    dtype = choose_dtype(settings.dtype, device, resolved.weight_bytes)
    model = auto.from_pretrained(resolved.folder, dtype=dtype, local_files_only=True)
    model = model.eval().requires_grad_(False).to(device)
    return LoadedModel(settings.name or resolved.name, model, tokenizer, length, family)


def _context_length(config: Any, limit: int | None) -> int:
    lengths = [getattr(config, "max_position_embeddings", None), limit]
    known = [int(length) for length in lengths if length is not None]
    if not known:
        raise ValueError("the model does not say how long its context is: set max_model_len")
    return min(known)


def _ids(*sources: int | Iterable[int] | None) -> frozenset[int]:
    ids: set[int] = set()
    for source in sources:
        if isinstance(source, int):
            ids.add(source)
        elif source is not None:
            ids.update(source)
    return frozenset(ids)


def build_executor(loaded: LoadedModel, settings: TorchSettings) -> TransformersExecutor:
    """Check the model, give it a KV cache, check again, add adapters. Raises UnsupportedModelError, AdapterError."""
    adapters = [load_adapter(name, folder, loaded.model) for name, folder in settings.adapters.items()]
    if loaded.name in settings.adapters:
        raise AdapterError(f"adapter {loaded.name!r}: the model has this name")
    prepared = PreparedModel(loaded.model, loaded.context_length, loaded.family)
    size = settings.block_size
    per_block = prepared.bytes_per_block(size)
    useful = settings.max_num_seqs * -(-loaded.context_length // size)
    affordable = _cache_bytes(loaded.model.device, settings.kv_cache_gib) // per_block
    # One block is the null block.
    executor = prepared.executor(max(2, min(useful, affordable) + 1), size)
    executor.add_adapters(adapters)
    return executor


def _cache_bytes(device: torch.device, gib: float | None) -> int:
    if gib is not None:
        return int(gib * GIB)
    if device.type == "cpu":
        return min(CPU_CACHE_LIMIT, free_memory(device) // 4)
    return free_memory(device) * 4 // 5
