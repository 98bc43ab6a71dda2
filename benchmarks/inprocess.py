"""Engines without HTTP around them, in the process of the benchmark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from time import perf_counter
from typing import Any

from isogloss.engine.api import Delta, GenerationRequest, Sampling, Stopping
from isogloss.engine.torch.engine import TorchEngine
from isogloss.engine.torch.settings import TorchSettings
from isogloss.models import default_cache, resolve_model

from benchmarks.workload import Candidate, Pace, Prompts, Work


@asynccontextmanager
async def own_engine(work: Work, model: str, dtype: str) -> AsyncIterator[Candidate]:
    """Our torch engine."""
    engine = TorchEngine(TorchSettings(model=model, dtype=dtype))
    await engine.start()

    async def one(prompt: list[int]) -> tuple[int, float]:
        stopping = Stopping(max_tokens=work.new_tokens, ignore_eos=True)
        request = GenerationRequest("benchmark", prompt, stopping, Sampling(temperature=0))
        begun, first, tokens = perf_counter(), 0.0, 0
        async with aclosing(engine.generate(request)) as events:
            async for event in events:
                if isinstance(event, Delta):
                    first = first or perf_counter() - begun
                    tokens += len(event.token_ids)
        return tokens, first

    async def run(prompts: Prompts) -> Pace:
        begun = perf_counter()
        results = await asyncio.gather(*(one(prompt) for prompt in prompts))
        seconds = perf_counter() - begun
        return Pace(sum(tokens for tokens, _ in results), seconds, [first for _, first in results])

    try:
        yield run
    finally:
        await engine.stop()


def transformers_peer(work: Work, model: str, dtype: str) -> Candidate:
    """`generate` of transformers on one batch of equal length, its best case: no padding, nobody comes or goes."""
    import torch  # noqa: PLC0415 -- seconds that other benchmarks need not wait for
    from isogloss.engine.torch.device import choose_device, choose_dtype  # noqa: PLC0415
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    resolved = resolve_model(model, default_cache())
    device = choose_device("auto")
    chosen = choose_dtype(dtype, device, resolved.weight_bytes)
    loaded: Any = AutoModelForCausalLM.from_pretrained(resolved.folder, dtype=chosen).eval().to(device)
    loaded.generation_config.eos_token_id = None

    def generate(prompts: Prompts) -> Pace:
        ids = torch.tensor(prompts, device=device)
        begun = perf_counter()
        made = loaded.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=work.new_tokens,
            do_sample=False,
            pad_token_id=0,
        )
        return Pace((made.shape[1] - ids.shape[1]) * len(prompts), perf_counter() - begun, [])

    async def run(prompts: Prompts) -> Pace:
        return await asyncio.to_thread(generate, prompts)

    return run
