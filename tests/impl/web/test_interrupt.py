"""Blocks that end from outside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from isogloss.web.errors import ClientGone
from isogloss.web.interrupt import Interruptible


class Reason(Exception):
    pass


async def _forever() -> Any:
    await asyncio.Event().wait()


async def test_the_reason_shows_and_the_task_lives_on() -> None:
    running: set[Interruptible] = set()
    with pytest.raises(Reason):
        async with Interruptible(running) as block:
            assert running == {block}
            asyncio.get_running_loop().call_soon(block.interrupt, Reason())
            await _forever()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert running == set()
    async with asyncio.timeout(5):
        await asyncio.sleep(0)


async def test_only_the_first_reason_counts() -> None:
    cancelled = 0
    with pytest.raises(Reason, match="first"):
        async with Interruptible(set()) as block:
            loop = asyncio.get_running_loop()
            loop.call_soon(block.interrupt, Reason("first"))
            loop.call_soon(block.interrupt, Reason("second"))
            try:
                await _forever()
            except asyncio.CancelledError:
                cancelled += 1
                await asyncio.sleep(0.01)
                raise
    assert cancelled == 1


async def test_a_real_cancellation_stays_one() -> None:
    async def work() -> None:
        async with Interruptible(set()):
            await _forever()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_errors_of_the_work_pass() -> None:
    with pytest.raises(ValueError, match="own"):
        async with Interruptible(set()):
            raise ValueError("own")


async def test_a_disconnect_is_a_reason() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        async with Interruptible(set()) as block:
            block.watch(receive)
            await _forever()


async def test_clocks_and_watchers_end_with_the_block() -> None:
    async with Interruptible(set()) as block:
        clock = block.interrupt_after(5, Reason())
        block.watch(_forever)
        await asyncio.sleep(0.05)
        assert len(asyncio.all_tasks()) == 2
    await asyncio.sleep(0)
    assert clock.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_stopped_clock_does_nothing() -> None:
    async with Interruptible(set()) as block:
        block.interrupt_after(0.01, Reason()).cancel()
        await asyncio.sleep(0.02)
