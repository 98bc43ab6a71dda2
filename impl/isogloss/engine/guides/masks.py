"""The masks of several choices at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.guides.matcher import Bits, GuideMatcher

_THREADS = 2
_ALONE = 8
"""Rows up to which one thread is faster: handing them over takes as long as a mask or two."""

_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="isogloss-masks")
"""Its threads start when they are first needed. llguidance computes without the interpreter's lock."""


def allowed_rows(
    guides: Sequence[GuideMatcher], banned: Sequence[Collection[int]], vocab_size: int
) -> NDArray[np.bool_]:
    """Which tokens may come next, [guides, vocabulary]; none in the row of a guide that failed."""
    if len(guides) <= _ALONE:
        packed = _packed(guides, banned)
    else:
        parts = [slice(first, None, _THREADS) for first in range(_THREADS)]
        done = list(_pool.map(_packed, [guides[part] for part in parts], [banned[part] for part in parts]))
        packed = [done[row % _THREADS][row // _THREADS] for row in range(len(guides))]
    return np.unpackbits(np.stack(packed), axis=1, count=vocab_size, bitorder="little").view(np.bool_)


def _packed(guides: Sequence[GuideMatcher], banned: Sequence[Collection[int]]) -> list[Bits]:
    return [guide.allowed(bans) for guide, bans in zip(guides, banned, strict=True)]
