"""How a torch engine is set up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isogloss.models import default_cache

AUTO = "auto"


def usable_cpus() -> int:
    """CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class TorchSettings:
    """The defaults suit the embedded model on a small machine."""

    model: str
    """`smollm2`, a folder, or a `.gguf` file."""
    name: str | None = None
    """Name to serve it by; None takes that of the model's place."""
    device: str = "auto"
    """`auto`, `cpu`, or what torch calls it, like `npu:0`."""
    dtype: str = "auto"
    """`auto`, `bf16`, `fp16` or `fp32`."""
    max_num_seqs: int = 32
    """Sequences that run at once."""
    max_waiting: int = 256
    """Requests that may wait to be started; more are refused as overload."""
    kv_cache_gib: float | None = None
    """Size of the KV cache; None takes 4 GiB or a quarter of the free memory on a CPU, four fifths
    of the free memory on an accelerator, and never more than can be used."""
    block_size: int = 16
    """Positions in a block of the KV cache."""
    prefill_budget: int = 512
    """Prompt tokens that one step computes beside the decoding sequences."""
    max_model_len: int | None = None
    """Bounds prompt and output together; None takes what the model was made for."""
    threads: int = field(default_factory=usable_cpus)
    """Threads that one operation may use on the CPU."""
    adapters: Mapping[str, Path] = field(default_factory=dict)
    """LoRA adapters in PEFT's format: name to folder."""
    tool_format: str | None = AUTO
    """How the model writes calls, by a name of `engine.chat`; None for a model that calls nothing, AUTO takes what its
    chat template shows."""
    reasoning_format: str | None = AUTO
    """The same for what it thinks."""
    cache_dir: Path = field(default_factory=default_cache)
    """Where converted models are kept."""
