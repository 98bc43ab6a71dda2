"""Penalties on tokens that have occurred, as vLLM defines them.

The repetition penalty counts prompt and output: a positive logit is divided by it, another is
multiplied. Frequency and presence penalties count the output only, and are subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from isogloss.engine.api import Sampling


def has_penalties(sampling: Sampling) -> bool:
    """Whether any penalty is in force."""
    return sampling.repetition_penalty != 1.0 or sampling.presence_penalty != 0.0 or sampling.frequency_penalty != 0.0


class TokenHistory:
    """The different tokens of one choice, and how often each is in the output."""

    __slots__ = ("_counts", "_ids", "_size", "_slots")

    def __init__(self, prompt: Sequence[int]) -> None:
        distinct = np.unique(np.asarray(prompt, dtype=np.int64))
        self._size = len(distinct)
        self._ids = np.concatenate([distinct, np.empty(64, dtype=np.int64)])
        self._counts = np.zeros(len(self._ids), dtype=np.float32)
        self._slots = {int(token): slot for slot, token in enumerate(distinct)}

    @property
    def ids(self) -> np.ndarray:
        """[distinct tokens], each once."""
        return self._ids[: self._size]

    @property
    def counts(self) -> np.ndarray:
        """[distinct tokens], 0 for a token that only the prompt has."""
        return self._counts[: self._size]

    def copy(self) -> TokenHistory:
        """The same history, for a sequence that will go another way."""
        twin = TokenHistory(())
        twin._size = self._size
        twin._ids, twin._counts, twin._slots = self._ids.copy(), self._counts.copy(), self._slots.copy()
        return twin

    def add(self, token: int) -> None:
        """Note one token of the output."""
        slot = self._slots.get(token)
        if slot is None:
            slot = self._append(token)
        self._counts[slot] += 1

    def _append(self, token: int) -> int:
        slot = self._size
        if slot == len(self._ids):
            self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._ids[slot] = token
        self._slots[token] = slot
        self._size += 1
        return slot


LARGEST = 1e30
"""What a penalty raises a logit to at most."""


def penalize(
    logits: torch.Tensor,
    rows: Sequence[int],
    samplings: Sequence[Sampling],
    histories: Sequence[TokenHistory],
) -> None:
    """Change `logits` [*, vocabulary] in place, at the given rows and the tokens that occurred."""
    sizes = torch.tensor([len(history.ids) for history in histories])
    where = torch.repeat_interleave(torch.tensor(rows), sizes).to(logits.device)
    ids = _joined([history.ids for history in histories], logits.device)
    counts = _joined([history.counts for history in histories], logits.device)
    per_row = torch.tensor([(s.repetition_penalty, s.frequency_penalty, s.presence_penalty) for s in samplings])
    repetition, frequency, presence = torch.repeat_interleave(per_row, sizes, dim=0).to(logits.device).unbind(1)
    values = logits[where, ids]
    # A penalty near 0 raises a logit without bound, and one that float32 cannot hold would divide by 0.
    raised = (values / repetition.clamp_min(torch.finfo(values.dtype).tiny)).clamp_max(LARGEST)
    values = torch.where(values > 0, raised, values * repetition)
    values -= frequency * counts + presence * (counts > 0)
    logits[where, ids] = values


def _joined(parts: list[np.ndarray], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(parts)).to(device)
