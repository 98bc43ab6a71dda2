"""Pictures and films for vision transformers of patches: how large, which frames, how many tokens, which numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch

from isogloss.engine.media import Image, MediaRefused, Video, VideoPlan
from isogloss.engine.torch.multimodal.folder import Settings, read_settings

STEEPEST = 200
"""Largest ratio of a picture's sides."""
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
FILM_TOKENS = 128_000
"""Tokens that a film may take, where the model's context is not shorter."""
FILM_SHARE = 0.9
"""Of these tokens, the part that its pixels may use."""

Grid = tuple[int, int, int]
"""Patches of a medium in time, height and width."""


@dataclass(frozen=True, slots=True)
class Patches:
    """How pixels are cut and scaled."""

    size: int
    """Pixels of a side."""
    frames: int
    """Frames of one patch."""
    merge: int
    """Patches of a side that become one token together."""
    mean: tuple[float, ...] = CLIP_MEAN
    std: tuple[float, ...] = CLIP_STD

    @property
    def side(self) -> int:
        """Pixels of the side of one token."""
        return self.size * self.merge


@dataclass(frozen=True, slots=True)
class PixelBounds:
    """Pixels that a picture, or a frame, may have."""

    least: int
    most: int

    def fit(self, height: int, width: int, side: int) -> tuple[int, int]:
        """Multiples of `side` within the bounds, as near to the shape as can be. Raises MediaRefused."""
        if min(height, width) < 1 or max(height, width) > STEEPEST * min(height, width):
            raise MediaRefused(f"one side is more than {STEEPEST} times the other")
        rows, columns = round(height / side), round(width / side)
        if rows * columns * side**2 > self.most:
            shrink = math.sqrt(height * width / self.most)
            rows, columns = (max(1, math.floor(edge / shrink / side)) for edge in (height, width))
        elif rows * columns * side**2 < self.least:
            stretch = math.sqrt(self.least / (height * width))
            rows, columns = (math.ceil(edge * stretch / side) for edge in (height, width))
        return rows * side, columns * side


@dataclass(frozen=True, slots=True)
class Film:
    """Which frames of a film to take, and how large."""

    bounds: PixelBounds
    frames_per_second: float = 2.0
    least_frames: int = 4
    most_frames: int = 768
    tokens: int = FILM_TOKENS
    """Tokens that all frames together may take, unless each is at its least already."""

    def chosen(self, frames: int, frames_per_second: float, group: int) -> tuple[int, ...]:
        """Numbers of evenly spread frames, a multiple of `group` of them where the film has so many."""
        most = min(self.most_frames, frames) // group * group
        wanted = frames / frames_per_second * self.frames_per_second
        count = math.floor(min(max(wanted, self.least_frames), most) / group) * group
        return tuple(frame * frames // count for frame in range(count)) if count else tuple(range(min(frames, group)))

    def bounds_for(self, frames: int, patches: Patches) -> PixelBounds:
        """Bounds of one of so many frames."""
        share = int(self.tokens * FILM_SHARE * patches.side**2) * patches.frames // frames
        most = max(min(self.bounds.most, share), int(self.bounds.least * 1.05))
        return PixelBounds(self.bounds.least, most)


@dataclass(frozen=True, slots=True)
class Vision:
    """What a model wants pictures and films to be like."""

    patches: Patches
    pictures: PixelBounds
    film: Film

    def image_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width that a picture must have. Raises MediaRefused."""
        return self.pictures.fit(height, width, self.patches.side)

    def video_plan(self, frames: int, frames_per_second: float, height: int, width: int) -> VideoPlan:
        """What to take of a film. Raises MediaRefused."""
        if frames < 1 or not 0 < frames_per_second < math.inf:
            raise MediaRefused("a film has frames, and a speed")
        chosen = self.film.chosen(frames, frames_per_second, self.patches.frames)
        bounds = self.film.bounds_for(len(chosen), self.patches)
        height, width = bounds.fit(height, width, self.patches.side)
        return VideoPlan(chosen, height, width, len(chosen) * frames_per_second / frames)

    def grid(self, medium: Image | Video) -> Grid:
        """Patches of a medium. Raises MediaRefused if its size is not one that this model asked for."""
        shape = medium.pixels.shape if isinstance(medium, Image) else medium.frames.shape[1:]
        frames = 1 if isinstance(medium, Image) else len(medium.frames)
        height, width, _ = shape
        if not (frames and height and width) or height % self.patches.side or width % self.patches.side:
            raise MediaRefused(f"the sides are no multiples of {self.patches.side} pixels")
        return -(-frames // self.patches.frames), height // self.patches.size, width // self.patches.size

    def count(self, medium: Image | Video) -> int:
        """Tokens of a medium. Raises MediaRefused."""
        return math.prod(self.grid(medium)) // self.patches.merge**2

    def cut(self, medium: Image | Video, device: torch.device) -> torch.Tensor:
        """The numbers of its patches, [patches, colours * frames * height * width of a patch].

        Patches that become one token follow each other. A last group of frames that is not full repeats its last one.
        """
        patches, (times, rows, columns) = self.patches, self.grid(medium)
        frames = torch.from_numpy(medium.pixels[None] if isinstance(medium, Image) else medium.frames).to(device)
        missing = times * patches.frames - len(frames)
        frames = torch.cat((frames, frames[-1:].expand(missing, -1, -1, -1)))
        mean, std = (torch.tensor(values, device=device) for values in (patches.mean, patches.std))
        numbers = (frames.float() / 255 - mean) / std
        merge, size = patches.merge, patches.size
        cut = numbers.view(times, patches.frames, rows // merge, merge, size, columns // merge, merge, size, 3)
        return cut.permute(0, 2, 5, 3, 6, 8, 1, 4, 7).reshape(times * rows * columns, -1)


def read_vision(folder: Path, context_length: int) -> Vision:
    """The settings of a model's folder. What it leaves open is what models of this kind were trained with."""
    images = read_settings(folder, "preprocessor_config.json", "image_processor")
    videos = read_settings(folder, "video_preprocessor_config.json", "video_processor")
    patches = Patches(
        images.get("patch_size", 14),
        images.get("temporal_patch_size", 2),
        images.get("merge_size", 2),
        tuple(images.get("image_mean", CLIP_MEAN)),
        tuple(images.get("image_std", CLIP_STD)),
    )
    area = patches.side**2
    film = Film(
        _bounds(videos, PixelBounds(128 * area, 768 * area)),
        videos.get("fps") or 2.0,
        videos.get("min_frames", 4),
        videos.get("max_frames", 768),
        min(videos.get("max_video_tokens", FILM_TOKENS), context_length),
    )
    return Vision(patches, _bounds(images, PixelBounds(4 * area, 1280 * area)), film)


def _bounds(settings: Settings, default: PixelBounds) -> PixelBounds:
    size = settings.get("size") or {}
    least = settings.get("min_pixels") or size.get("shortest_edge") or size.get("min_pixels") or default.least
    most = settings.get("max_pixels") or size.get("longest_edge") or size.get("max_pixels") or default.most
    return PixelBounds(least, most)
