"""Between a medium's facts and its array: what the model's processor wants of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.media import Audio, Image, Media, MediaProcessor, Video
from isogloss.media.api import MediaError
from isogloss.media.decoding.process import ProcessLost
from isogloss.media.decoding.protocol import (
    Facts,
    FilmFacts,
    FilmWish,
    PictureFacts,
    PictureWish,
    SoundFacts,
    SoundWish,
    Wish,
)


@dataclass(frozen=True, slots=True)
class Order:
    """What is wanted of one medium, and what to make of the array that comes."""

    wish: Wish
    shape: tuple[int, ...]
    """Of the array; of sound, the most that it may be."""
    dtype: type[np.uint8] | type[np.float32]
    finish: Callable[[NDArray[Any]], Media]

    def array(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array for what a process says it will send. Raises ProcessLost if that is not what was ordered."""
        is_sound = isinstance(self.wish, SoundWish)
        fits = len(shape) == 1 and 0 < shape[0] <= self.shape[0] if is_sound else shape == self.shape
        if not fits:
            raise ProcessLost
        return np.empty(shape, self.dtype)


def order(facts: Facts, processor: MediaProcessor, most: int) -> Order:
    """What to order of a medium, at most so many bytes. Raises MediaError: too_complex; what the processor raises."""
    made = _order(facts, processor)
    if math.prod(made.shape) * np.dtype(made.dtype).itemsize > most:
        raise MediaError("too_complex")
    return made


def _order(facts: Facts, processor: MediaProcessor) -> Order:
    if isinstance(facts, PictureFacts):
        return _picture(facts, processor)
    if isinstance(facts, FilmFacts):
        return _film(facts, processor)
    return _sound(facts, processor)


def _picture(facts: PictureFacts, processor: MediaProcessor) -> Order:
    height, width = processor.image_size(facts.height, facts.width)
    return Order(PictureWish(height, width), (height, width, 3), np.uint8, Image)


def _film(facts: FilmFacts, processor: MediaProcessor) -> Order:
    plan = processor.video_plan(facts.frames, facts.frames_per_second, facts.height, facts.width)
    wish = FilmWish(list(plan.frames), plan.height, plan.width)
    shape = (len(plan.frames), plan.height, plan.width, 3)
    return Order(wish, shape, np.uint8, lambda frames: Video(frames, plan.frames_per_second))


def _sound(facts: SoundFacts, processor: MediaProcessor) -> Order:
    rate = processor.sample_rate
    wish = SoundWish(rate, processor.longest_audio)
    seconds = min(facts.seconds + 1, processor.longest_audio)  # the resampler may round up
    return Order(wish, (math.ceil(seconds * rate),), np.float32, lambda samples: Audio(samples, rate))
