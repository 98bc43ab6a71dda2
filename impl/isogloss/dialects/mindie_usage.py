"""What MindIE says about tokens and time. All of it is measured by the engine."""

from __future__ import annotations

from collections.abc import Iterable

from isogloss_api.mindie import responses

from isogloss.engine.api import Timing

_MILLI = 1e3
_MICRO = 1e6


def usage(
    prompt: int, cached: int, completion: int, longest: int, timing: Timing, reasoning: int | None = None
) -> responses.Usage:
    """Counts of tokens, and the batch size and waiting time (in µs) of each token of the longest sequence.

    The first token waits from the request's arrival until the first step that works on it, each other one from the
    token before until the step that makes it. `reasoning` is None for a model whose thoughts are not told apart; then
    nothing is said of them.
    """
    counts: responses.Usage = {
        "prompt_tokens": prompt,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "batch_size": list(timing.batch_sizes[:longest]),
        "queue_wait_time": _whole(((timing.queue, *timing.waits)[:longest]), _MICRO),
    }
    return counts if reasoning is None else {**counts, "completion_tokens_details": {"reasoning_tokens": reasoning}}


def prefill_time(timing: Timing) -> float:
    """Milliseconds from the request's arrival until its first token."""
    return round((timing.queue + timing.prefill) * _MILLI, 3)


def decode_times(timing: Timing, tokens: int) -> list[float]:
    """Milliseconds between tokens, one less than there are tokens."""
    return [round(seconds * _MILLI, 3) for seconds in timing.decode[: max(0, tokens - 1)]]


def _whole(seconds: Iterable[float], unit: float) -> list[int]:
    return [round(value * unit) for value in seconds]
