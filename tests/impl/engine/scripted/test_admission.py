from __future__ import annotations

import asyncio

import pytest
from isogloss.engine.api import EngineOverloaded
from isogloss.engine.scripted.admission import Admission


def counts(admission):
    return admission.running, admission.waiting, admission.running_seqs


def test_lower_priorities_first_then_order_of_arrival():
    admission = Admission(max_num_seqs=1, max_waiting=9)
    running = admission.enter(1, 0)
    places = {name: admission.enter(1, priority) for name, priority in zip("abcd", (5, 0, 0, -1), strict=True)}
    order = []
    while running is not None:
        admission.leave(running)
        running = next((p for p in places.values() if p.started and not p.left), None)
        order += [name for name, place in places.items() if place is running]
    assert order == ["d", "b", "c", "a"]
    assert counts(admission) == (0, 0, 0)


def test_the_waiting_line_is_bounded():
    admission = Admission(max_num_seqs=1, max_waiting=1)
    first, second = admission.enter(1, 0), admission.enter(1, 0)
    with pytest.raises(EngineOverloaded):
        admission.enter(1, -5)
    assert counts(admission) == (1, 1, 1)
    admission.leave(second)
    third = admission.enter(1, 0)
    admission.leave(first)
    assert third.started
    assert counts(admission) == (1, 0, 1)


def test_no_waiting_at_all():
    admission = Admission(max_num_seqs=1, max_waiting=0)
    admission.enter(1, 0)
    with pytest.raises(EngineOverloaded):
        admission.enter(1, 0)


def test_choices_count_and_ended_ones_make_room():
    admission = Admission(max_num_seqs=4, max_waiting=9)
    wide, narrow = admission.enter(3, 0), admission.enter(2, 0)
    assert not narrow.started
    admission.shrink(wide, 1)
    assert narrow.started
    assert counts(admission) == (2, 0, 4)
    admission.shrink(wide, 2)
    assert wide.left
    admission.leave(wide)
    assert counts(admission) == (1, 0, 2)


def test_a_request_wider_than_the_engine_runs_alone():
    admission = Admission(max_num_seqs=2, max_waiting=9)
    small, wide, late = admission.enter(1, 0), admission.enter(5, 0), admission.enter(1, 0)
    assert (small.started, wide.started, late.started) == (True, False, False)
    admission.leave(small)
    assert (wide.started, late.started) == (True, False)


async def test_leaving_the_line_wakes_the_waiter():
    admission = Admission(max_num_seqs=1, max_waiting=9)
    admission.enter(1, 0)
    place = admission.enter(1, 0)
    waiter = asyncio.create_task(place.settled.wait())
    await asyncio.sleep(0)
    assert not waiter.done()
    admission.leave(place)
    assert await waiter
    assert not place.started
