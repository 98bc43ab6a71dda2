"""The media of one request while its prompt is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from isogloss.engine.media import Media
from isogloss.engine.torch.executor import Embedded, Span
from isogloss.engine.torch.multimodal.placed import PlacedMedium, TorchMedia

Encode = Callable[[Media], torch.Tensor]
"""Computes what takes the place of a medium's tokens, [tokens, hidden size]."""


class JobMedia:
    """Computes each medium when a step first needs it, and forgets it when the prompt is computed past it.

    Chunks of a prefill share the result. After a preemption it is computed again, if its tokens are.
    """

    def __init__(self, media: TorchMedia) -> None:
        self._media = media
        self._encoded: dict[PlacedMedium, torch.Tensor] = {}

    @property
    def contents(self) -> dict[int, bytes]:
        """What stands for each medium, by the index of its first token."""
        media = self._media
        return {one.first: digest for one, digest in zip(media.placed, media.digests, strict=True)}

    def _within(self, first: int, last: int) -> list[PlacedMedium]:
        return [medium for medium in self._media.placed if medium.first < last and first < medium.end]

    def compute(self, first: int, last: int, encode: Encode) -> None:
        """Have ready what the tokens `first` to `last` (exclusive) need. Raises what the model raises."""
        for medium in self._within(first, last):
            if medium not in self._encoded:
                rows = encode(medium.medium)
                if len(rows) != medium.count:
                    raise ValueError(f"the model makes {len(rows)} rows of a medium of {medium.count} tokens")
                self._encoded[medium] = rows

    def release(self, computed: int) -> None:
        """Forget what ends before this token."""
        for medium in [medium for medium in self._encoded if medium.end <= computed]:
            del self._encoded[medium]

    def onto(self, span: Span) -> Span:
        """The span with what the media do to it."""
        first, last = span.start, span.start + len(span.tokens)
        embedded = tuple(self._part(medium, first, last) for medium in self._within(first, last))
        rotary = self._media.rotary
        if rotary is None:
            return replace(span, embedded=embedded)
        if first >= self._media.length:
            return replace(span, shift=rotary.shift)
        return replace(span, embedded=embedded, positions=rotary.between(first, last))

    def _part(self, medium: PlacedMedium, first: int, last: int) -> Embedded:
        begin, end = max(first, medium.first), min(last, medium.end)
        return Embedded(begin - first, self._encoded[medium][begin - medium.first : end - medium.first])
