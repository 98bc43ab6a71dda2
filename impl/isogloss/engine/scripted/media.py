"""What the tiny model makes of media: it counts their tokens, and with another file it answers something else."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from isogloss.engine.media import (
    KINDS,
    Audio,
    Image,
    Media,
    MediaInput,
    MediaKind,
    MediaRefused,
    PlacedMedia,
    VideoPlan,
    digest_of,
)
from isogloss.engine.scripted.vocabulary import PLACEHOLDERS

_LONGEST_SIDE = 64
_NARROWEST = 200
"""How many times longer than the other a side may be, as with models that people use."""
_PATCH = 16
"""Pixels of a patch's side; a token stands for each patch that is begun."""
_FRAMES = 4
_SAMPLE_RATE = 16_000
_TOKENS_A_SECOND = 4
_LONGEST_AUDIO = 30.0


class ScriptedProcessor:
    """Pictures of at most 64 by 64 pixels, four frames of a film, half a minute of sound."""

    @property
    def kinds(self) -> frozenset[MediaKind]:
        """All there are."""
        return frozenset(PLACEHOLDERS)

    @property
    def sample_rate(self) -> int:
        """Samples a second that sound must have."""
        return _SAMPLE_RATE

    @property
    def longest_audio(self) -> float:
        """Seconds of sound that count."""
        return _LONGEST_AUDIO

    def image_size(self, height: int, width: int) -> tuple[int, int]:
        """The same shape, made smaller until it fits. Raises MediaRefused if it is too narrow."""
        if max(height, width) > _NARROWEST * min(height, width):
            raise MediaRefused("the picture is too narrow")
        share = min(1.0, _LONGEST_SIDE / max(height, width))
        return max(1, int(height * share)), max(1, int(width * share))

    def video_plan(self, frames: int, frames_per_second: float, height: int, width: int) -> VideoPlan:
        """Four frames from all over the film, or all if there are fewer. Raises MediaRefused if there are none."""
        count = min(_FRAMES, frames)
        if count < 1:
            raise MediaRefused("the film has no frames")
        chosen = tuple(number * frames // count for number in range(count))
        height, width = self.image_size(height, width)
        return VideoPlan(chosen, height, width, frames_per_second * count / frames)

    def place(self, tokens: Sequence[int], media: Sequence[Media]) -> PlacedMedia:
        """Repeat each placeholder. Raises MediaRefused if they are not those of the media."""
        wanted = [PLACEHOLDERS[KINDS[type(medium)]] for medium in media]
        placeholders = frozenset(PLACEHOLDERS.values())
        if [token for token in tokens if token in placeholders] != wanted:
            raise MediaRefused("the prompt's placeholders are not those of its media")
        counts = iter([_tokens(medium) for medium in media])
        placed: list[int] = []
        for token in tokens:
            placed += [token] * (next(counts) if token in placeholders else 1)
        return PlacedMedia(placed, MediaInput([*map(digest_of, media)]))


def _tokens(medium: Media) -> int:
    """A token for each patch of each frame, or for each quarter of a second."""
    if isinstance(medium, Audio):
        return max(1, ceil(len(medium.samples) * _TOKENS_A_SECOND / medium.sample_rate))
    frames = [medium.pixels] if isinstance(medium, Image) else medium.frames
    return sum(ceil(len(frame) / _PATCH) * ceil(len(frame[0]) / _PATCH) for frame in frames)
