"""How the cost of work grows with its size: ratios, which a slow or busy machine leaves as they are."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType

_TOO_SMALL_S = 0.05
"""What takes less than this at its larger size is within the clock's noise."""
_TRIES = 4


def grows_linearly(work: Callable[[int], object], small: int, large: int) -> bool:
    """Whether work of the larger size costs at most three times what a straight line foretells.

    Noise only ever adds to a time, and work that grows with the square costs `large / small` times what the line
    foretells however often it is tried: so one good try is enough, and the sizes should be eight times apart or more.
    """
    return any(_once(work, small, large) for _ in range(_TRIES))


def calls_of(work: Callable[[], object]) -> int:
    """How many Python functions the work calls."""
    count = 0

    def seen(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _once(work: Callable[[int], object], small: int, large: int) -> bool:
    long = _seconds(work, large)
    return long < _TOO_SMALL_S or long < 3 * (large / small) * _seconds(work, small)


def _seconds(work: Callable[[int], object], size: int) -> float:
    gc.disable()  # a collection walks whatever else the process holds
    begun = time.thread_time()
    try:
        work(size)
        return time.thread_time() - begun
    finally:
        gc.enable()
