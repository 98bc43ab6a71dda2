"""Qwen2-VL and Qwen2.5-VL: pictures and films, and rotary positions in time, height and width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from isogloss.engine.media import Audio, Image, Media, MediaKind, MediaRefused, Video
from isogloss.engine.torch.executor import UnsupportedModelError
from isogloss.engine.torch.multimodal.folder import read_chat_template
from isogloss.engine.torch.multimodal.placed import PlacedMedium, RotaryPositions
from isogloss.engine.torch.multimodal.vision import Vision, read_vision


class Qwen2VL:
    """Implements `Family`."""

    hearing = None

    def __init__(self, config: Any, folder: Path, context_length: int) -> None:
        """Raises UnsupportedModelError if the folder's processor cuts patches of another shape than the model's."""
        tower = config.vision_config
        self.vision: Vision = read_vision(folder, context_length)
        self.marks: dict[int, MediaKind] = {config.image_token_id: "image", config.video_token_id: "video"}
        self.chat_template = read_chat_template(folder)
        self._tokens_per_second: float | None = getattr(tower, "tokens_per_second", None)
        patches = self.vision.patches
        shape = (tower.patch_size, tower.temporal_patch_size, tower.spatial_merge_size)
        if (patches.size, patches.frames, patches.merge) != shape:
            raise UnsupportedModelError("the processor's patches are of another shape than the model's")

    def count(self, medium: Media) -> int:
        """One token for some patches side by side. Raises MediaRefused."""
        return self.vision.count(_seen(medium))

    def rotary(self, length: int, placed: Sequence[PlacedMedium]) -> RotaryPositions | None:
        """Text goes on in all three; a medium spans a box, and text behind it goes on past its longer side."""
        if not placed:
            return None
        parts: list[torch.Tensor] = []
        position = done = 0
        for one in placed:
            parts.append(_line(position, one.first - done))
            position += one.first - done
            parts.append(self._box(position, _seen(one.medium)))
            position += self._side(_seen(one.medium))
            done = one.end
        parts.append(_line(position, length - done))
        # What is generated is text, and goes on where text would.
        return RotaryPositions(torch.cat(parts, dim=1), position - done)

    def _side(self, medium: Image | Video) -> int:
        return max(self.vision.grid(medium)[1:]) // self.vision.patches.merge

    def _box(self, position: int, medium: Image | Video) -> torch.Tensor:
        """Positions of one medium's tokens, [3, tokens]."""
        times, rows, columns = self.vision.grid(medium)
        merge = self.vision.patches.merge
        axes = [(torch.arange(times) * self._interval(medium)).long()]
        axes += [torch.arange(patches // merge) for patches in (rows, columns)]
        return torch.stack(torch.meshgrid(*axes, indexing="ij")).reshape(3, -1) + position

    def _interval(self, medium: Image | Video) -> float:
        """Positions from one group of frames to the next."""
        if self._tokens_per_second is None or isinstance(medium, Image):
            return 1.0
        return self._tokens_per_second * (self.vision.patches.frames / medium.frames_per_second)

    @torch.inference_mode()
    def encode(self, model: Any, medium: Media) -> torch.Tensor:
        """Run the vision tower."""
        seen = _seen(medium)
        grid = torch.tensor([self.vision.grid(seen)], device=model.device)
        features = model.get_image_features if isinstance(seen, Image) else model.get_video_features
        rows: torch.Tensor = features(self.vision.cut(seen, model.device), grid).pooler_output[0]
        return rows


def _line(position: int, count: int) -> torch.Tensor:
    return torch.arange(position, position + count).expand(3, -1)


def _seen(medium: Media) -> Image | Video:
    if isinstance(medium, Audio):
        raise MediaRefused("the model does not hear")
    return medium
