"""Takes media into prompts for models of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isogloss.engine.media import KINDS, Media, MediaKind, MediaRefused, PlacedMedia, VideoPlan, digest_of
from isogloss.engine.torch.multimodal.family import Family
from isogloss.engine.torch.multimodal.placed import PlacedMedium, TorchMedia


class Processor:
    """Implements `MediaProcessor` for one model."""

    def __init__(self, family: Family) -> None:
        self._family = family

    @property
    def kinds(self) -> frozenset[MediaKind]:
        """What the model takes."""
        return frozenset(self._family.marks.values())

    @property
    def sample_rate(self) -> int:
        """Samples a second that sound must have; 0 for a model that does not hear."""
        return self._family.hearing.sample_rate if self._family.hearing else 0

    @property
    def longest_audio(self) -> float:
        """Seconds of sound that the model hears."""
        return self._family.hearing.longest if self._family.hearing else 0.0

    def image_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width that a picture of this size must have. Raises MediaRefused."""
        if self._family.vision is None:
            raise MediaRefused("the model does not see")
        return self._family.vision.image_size(height, width)

    def video_plan(self, frames: int, frames_per_second: float, height: int, width: int) -> VideoPlan:
        """What to take of a film. Raises MediaRefused."""
        if self._family.vision is None:
            raise MediaRefused("the model does not see")
        return self._family.vision.video_plan(frames, frames_per_second, height, width)

    def place(self, tokens: Sequence[int], media: Sequence[Media]) -> PlacedMedia:
        """Write out the placeholders of a prompt, the first for the first medium.

        Reads the media once, for their digests. Raises MediaRefused.
        """
        written: list[int] = []
        placed: list[PlacedMedium] = []
        done = 0
        for number, (index, medium) in enumerate(self._pairs(tokens, media)):
            written += tokens[done:index]
            placed.append(PlacedMedium(medium, len(written), self._count(number, medium)))
            written += [tokens[index]] * placed[-1].count
            done = index + 1
        written += tokens[done:]
        rotary = self._family.rotary(len(written), placed)
        return PlacedMedia(written, TorchMedia([*map(digest_of, media)], len(written), placed, rotary))

    def _count(self, number: int, medium: Media) -> int:
        try:
            return self._family.count(medium)
        except MediaRefused as error:
            raise MediaRefused(str(error), number) from error

    def _pairs(self, tokens: Sequence[int], media: Sequence[Media]) -> Iterator[tuple[int, Media]]:
        marks = self._family.marks
        places = [index for index, token in enumerate(tokens) if token in marks]
        if len(places) != len(media):
            raise MediaRefused(f"the prompt has {len(places)} placeholders for {len(media)} media")
        for index, medium in zip(places, media, strict=True):
            if marks[tokens[index]] != KINDS[type(medium)]:
                raise MediaRefused("a placeholder is for another kind of medium")
            yield index, medium
