"""The thread: requests in, events out, nobody left waiting."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from isogloss.engine.api import EngineFailure, EngineOverloaded, Sampling
from isogloss.engine.tokens import Admitted, Sampled, TokenSource
from isogloss.engine.torch.core import EngineCore
from isogloss.engine.torch.scheduler import Limits, Scheduler
from isogloss.engine.torch.stepper import Stepper, StepperSettings


async def tokens_of(stream) -> list[int]:
    return [event.token_id async for step in stream for event in step if isinstance(event, Sampled)]


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a status is polled
            await asyncio.sleep(0.005)


async def test_streams_carry_what_generate_gives(stepper, zoo, ask):
    source: TokenSource = stepper
    prompts = [[20, 21], [30, 31, 32]]
    results = await asyncio.gather(*(tokens_of(source.open(ask(prompt, 15))) for prompt in prompts))
    assert results == [zoo.generate("llama", prompt, 15) for prompt in prompts]
    status = stepper.status()
    assert (status.ready, status.running, status.waiting) == (True, 0, 0)
    assert (status.prompt_tokens, status.generated_tokens) == (5, 30)


async def test_the_thread_uses_as_many_threads_as_it_was_told(executor, ask):
    core = EngineCore(executor, Limits(max_num_seqs=1, prefill_budget=16))
    stepper = Stepper(core, StepperSettings(max_waiting=3, threads=3, eos=frozenset()))
    stepper.start()
    await tokens_of(stepper.open(ask([20, 21], 2)))
    await asyncio.to_thread(stepper.stop)
    assert executor.threads == 3


async def test_each_step_is_one_list_and_is_timed(stepper, executor, ask):
    executor.pause = 0.02
    before = time.perf_counter()
    stream = stepper.open(ask([20, 21], 5, Sampling(seed=1), n=2))
    steps = [step async for step in stream]
    took = time.perf_counter() - before
    assert [type(event) for event in steps[0]] == [Admitted, Sampled, Sampled]
    assert [[event.choice for event in step] for step in steps[1:]] == [[0, 1]] * 4
    for choice in (0, 1):
        timing = stream.timing(choice)
        assert timing.batch_sizes == (1, 2, 2, 2, 2)
        assert len(timing.decode) == 4
        assert min(timing.decode) >= 0.02
        assert all(0 <= wait <= whole - 0.02 for wait, whole in zip(timing.waits, timing.decode, strict=True))
        assert timing.prefill >= 0.02
        assert 0 <= timing.queue < 0.1
        assert timing.queue + timing.prefill + sum(timing.decode) <= took


async def test_timing_is_of_the_tokens_seen_so_far(stepper, executor, ask):
    stream = stepper.open(ask([20, 21], 6))
    iterator = aiter(stream)
    await anext(iterator)
    await until(lambda: executor.steps == 6)
    await anext(iterator)
    assert len(stream.timing(0).batch_sizes) == 2


async def test_waiting_requests_are_counted_and_bounded(stepper, executor, ask):
    executor.gate.clear()
    first = stepper.open(ask([20], 3))
    await until(lambda: not stepper._inbox.qsize())
    # The step that holds it up tells of its start only when it is done.
    streams = [stepper.open(ask([30 + i], 3)) for i in range(2)]
    assert stepper.status().waiting == 3
    with pytest.raises(EngineOverloaded):
        stepper.open(ask([50], 3))
    executor.gate.set()
    assert [len(await tokens_of(stream)) for stream in (first, *streams)] == [3, 3, 3]
    assert len(await tokens_of(stepper.open(ask([50], 3)))) == 3


async def test_closing_frees_the_place_at_once(stepper, executor, ask):
    executor.pause = 0.01
    endless = [stepper.open(ask([20 + i], 200)) for i in range(2)]
    await anext(aiter(endless[0]))
    next_one = stepper.open(ask([40], 2))
    assert stepper.status().waiting == 1
    steps = executor.steps
    endless[0].close()
    endless[0].close()
    assert len(await tokens_of(next_one)) == 2
    assert executor.steps <= steps + 6
    assert stepper.status().running == 1
    endless[1].close()
    await until(lambda: stepper.status().running == 0)
    # Nothing is left to do, so nothing is done.
    steps = executor.steps
    await asyncio.sleep(0.05)
    assert executor.steps == steps


async def test_ending_a_choice_ends_the_stream_when_it_was_the_last(stepper, executor, ask):
    executor.pause = 0.005
    stream = stepper.open(ask([20], 200, n=2))
    await anext(aiter(stream))
    stream.end(0)
    stream.end(1)
    async with asyncio.timeout(5):
        assert len(await tokens_of(stream)) < 100


async def test_stop_ends_running_and_waiting_requests(executor, ask):
    core = EngineCore(executor, Limits(max_num_seqs=1, prefill_budget=16))
    stepper = Stepper(core, StepperSettings(max_waiting=3, threads=1, eos=frozenset()))
    stepper.start()
    executor.pause = 0.01
    streams = [stepper.open(ask([20 + i], 200)) for i in range(2)]
    await anext(aiter(streams[0]))
    await asyncio.to_thread(stepper.stop)
    for stream in streams:
        with pytest.raises(EngineFailure):
            await tokens_of(stream)
    with pytest.raises(EngineFailure):
        stepper.open(ask([20], 2))
    assert not stepper.status().ready
    stepper.stop()


async def test_a_broken_scheduler_hangs_nobody(stepper, zoo, ask, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "plan", lambda self: 1 / 0)
        streams = [stepper.open(ask([20 + i], 5)) for i in range(2)]
        for stream in streams:
            with pytest.raises(EngineFailure):
                await asyncio.wait_for(tokens_of(stream), 5)
    assert await tokens_of(stepper.open(ask([20, 21], 5))) == zoo.generate("llama", [20, 21], 5)


async def test_an_engine_beyond_repair_hangs_nobody(zoo, ask, monkeypatch):
    core = EngineCore(zoo.executor("llama"), Limits(max_num_seqs=1, prefill_budget=16))
    stepper = Stepper(core, StepperSettings(max_waiting=3, threads=1, eos=frozenset()))
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    monkeypatch.setattr(Scheduler, "plan", lambda self: 1 / 0)
    monkeypatch.setattr(EngineCore, "reset", lambda self, reason: 1 / 0)
    stepper.start()
    stream = stepper.open(ask([20], 5))
    with pytest.raises(EngineFailure):
        await asyncio.wait_for(tokens_of(stream), 5)
    await asyncio.to_thread(stepper.stop)
    assert failed
    assert not stepper.status().ready


def test_a_caller_whose_loop_is_gone_is_forgotten(stepper, executor, ask):
    executor.pause = 0.005

    async def leave() -> None:
        await anext(aiter(stepper.open(ask([20], 200))))

    asyncio.run(leave())
    asyncio.run(until(lambda: stepper.status().running == 0))
    assert executor.steps < 100


async def test_one_call_into_the_loop_per_step(stepper, executor, ask, monkeypatch):
    loop = asyncio.get_running_loop()
    calls = []
    original = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *a, **k: calls.append(a) or original(*a, **k))
    await asyncio.gather(*(tokens_of(stepper.open(ask([20 + i], 10))) for i in range(2)))
    assert len(calls) <= executor.steps + 2
