"""The media of a prompt in their places, and the rotary positions that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from isogloss.engine.media import Media, MediaInput


@dataclass(frozen=True, slots=True, eq=False)
class PlacedMedium:
    """One medium, and the tokens of the prompt whose place it takes."""

    medium: Media
    first: int
    """Index of its first token."""
    count: int
    """Tokens, one after the other."""

    @property
    def end(self) -> int:
        """Index after its last token."""
        return self.first + self.count


@dataclass(frozen=True, slots=True, eq=False)
class RotaryPositions:
    """Positions of models that count time, height and width apart (M-RoPE)."""

    prompt: torch.Tensor
    """[3, tokens of the prompt], on the CPU."""
    shift: int
    """What to add to the index of a token behind the prompt for its three equal positions."""

    def between(self, first: int, last: int) -> torch.Tensor:
        """Positions of the tokens `first` to `last` (exclusive), [3, tokens]."""
        length = self.prompt.shape[1]
        behind = torch.arange(max(first, length), max(last, length)) + self.shift
        return torch.cat((self.prompt[:, first:last], behind.expand(3, -1)), dim=1)


class TorchMedia(MediaInput):
    """Media for the torch engine. Pixels and samples are kept as they came: what a tower wants is computed last."""

    __slots__ = ("length", "placed", "rotary")

    def __init__(
        self, digests: Sequence[bytes], length: int, placed: Sequence[PlacedMedium], rotary: RotaryPositions | None
    ) -> None:
        super().__init__(digests)
        self.length = length
        """Tokens of the prompt."""
        self.placed = placed
        """In the order of the prompt."""
        self.rotary = rotary
        """None for models whose tokens have one position each, or if there are no media."""
