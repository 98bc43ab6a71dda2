"""Tokens per second and time to the first token of the torch engine: over HTTP, in process, and beside a peer."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field

import orjson

from benchmarks.load import Answer, completion_request, drive
from benchmarks.processes import Server, running, serve_command
from benchmarks.report import Report, Row, Section, ratio, spread
from benchmarks.workload import Candidate, Pace, Prompts, Work

OURS = "isogloss over HTTP"
_WARMUP_SEED = -1


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What is decoded, and how often."""

    concurrency: Sequence[int] = (1, 8, 32)
    rounds: int = 3
    model: str = "smollm2"
    dtype: str = "auto"
    peer: str | None = None
    """`transformers`, or no peer."""
    work: Work = field(default_factory=Work)


def measure_engine(settings: EngineSettings) -> Report:
    """Load all candidates, then give them the same prompts in turn, round by round."""
    return asyncio.run(_measure(settings))


async def _measure(settings: EngineSettings) -> Report:
    async with _candidates(settings) as candidates:
        sections = [await _section(candidates, settings, count) for count in settings.concurrency]
    return Report("engine", asdict(settings), sections)


@asynccontextmanager
async def _candidates(settings: EngineSettings) -> AsyncIterator[dict[str, Candidate]]:
    # Imported here: torch takes seconds that the other benchmarks need not wait for.
    from benchmarks.inprocess import own_engine, transformers_peer  # noqa: PLC0415

    work, model, dtype = settings.work, settings.model, settings.dtype
    async with AsyncExitStack() as stack:
        server = stack.enter_context(running(serve_command("torch", "--model", model, "--dtype", dtype)))
        own = await stack.enter_async_context(own_engine(work, model, dtype))
        candidates = {OURS: _over_http(server, work, model), "isogloss in process": own}
        if settings.peer == "transformers":
            candidates["transformers generate"] = transformers_peer(work, model, dtype)
        yield candidates


def _over_http(server: Server, work: Work, model: str) -> Candidate:
    body = {
        "model": model,
        "max_tokens": work.new_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }

    async def run(prompts: Prompts) -> Pace:
        requests = [completion_request(body | {"prompt": prompt}) for prompt in prompts]
        load = await drive(server.port, requests, len(prompts))
        tokens = sum(_completion_tokens(answer) for answer in load.answers)
        return Pace(tokens, load.seconds, [answer.first_s for answer in load.answers])

    return run


def _completion_tokens(answer: Answer) -> int:
    return int(orjson.loads(answer.last)["usage"]["completion_tokens"])


async def _section(candidates: Mapping[str, Candidate], settings: EngineSettings, count: int) -> Section:
    for run in candidates.values():
        await run(settings.work.prompts(count, _WARMUP_SEED))
    paces: dict[str, list[Pace]] = {name: [] for name in candidates}
    for number in range(settings.rounds):
        prompts = settings.work.prompts(count, count * settings.rounds + number)
        for name, run in candidates.items():
            paces[name].append(await run(prompts))
    return Section(f"Concurrency {count}", [_row(name, paces) for name in candidates])


def _row(name: str, paces: Mapping[str, Sequence[Pace]]) -> Row:
    mine = [pace.tokens_per_second for pace in paces[name]]
    ours = [pace.tokens_per_second for pace in paces[OURS]]
    figures = {"tokens/s": spread(mine), "over HTTP/this": ratio(ours, mine)}
    if all(pace.first_s for pace in paces[name]):
        figures["first token p50, ms"] = spread(statistics.median(pace.first_s) * 1000 for pace in paces[name])
    return Row(name, figures)
