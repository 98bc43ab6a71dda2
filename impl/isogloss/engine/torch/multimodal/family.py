"""What each family of models with media has to say, and which families there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from isogloss.engine.media import Media, MediaKind
from isogloss.engine.torch.multimodal.hearing import Hearing
from isogloss.engine.torch.multimodal.placed import PlacedMedium, RotaryPositions
from isogloss.engine.torch.multimodal.qwen2_audio import Qwen2Audio
from isogloss.engine.torch.multimodal.qwen2_vl import Qwen2VL
from isogloss.engine.torch.multimodal.vision import Vision


class Family(Protocol):
    """One model with media. Everything but `encode` is neutral to the weights, and safe to call from any thread."""

    @property
    def marks(self) -> Mapping[int, MediaKind]:
        """Tokens that stand for a medium in a prompt."""
        ...

    @property
    def vision(self) -> Vision | None:
        """What it wants pictures and films to be like, if it sees."""
        ...

    @property
    def hearing(self) -> Hearing | None:
        """What it wants sound to be like, if it hears."""
        ...

    @property
    def chat_template(self) -> str | None:
        """The template of its processor, which goes before the tokenizer's; None if it has none."""
        ...

    def count(self, medium: Media) -> int:
        """Tokens that a medium takes. Raises MediaRefused."""
        ...

    def rotary(self, length: int, placed: Sequence[PlacedMedium]) -> RotaryPositions | None:
        """Positions in a prompt of so many tokens; None if they are the tokens' indices."""
        ...

    def encode(self, model: Any, medium: Media) -> torch.Tensor:
        """What takes the place of the medium's tokens, [tokens, hidden size], on the model's device."""
        ...


FAMILIES: Mapping[str, Callable[[Any, Path, int], Family]] = {
    "qwen2_vl": Qwen2VL,
    "qwen2_5_vl": Qwen2VL,
    "qwen2_audio": Qwen2Audio,
}
"""By the configuration's `model_type`. Made of the configuration, the model's folder and the context length;
raises UnsupportedModelError where these do not agree."""
