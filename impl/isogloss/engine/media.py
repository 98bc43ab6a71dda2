"""Pictures, films and sound on their way into a model: decoded, and neutral to whoever decoded them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

MediaKind = Literal["image", "video", "audio"]


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A picture."""

    pixels: NDArray[np.uint8]
    """RGB, shape (height, width, 3)."""


@dataclass(frozen=True, slots=True, eq=False)
class Video:
    """The frames of a film that a model gets to see."""

    frames: NDArray[np.uint8]
    """RGB, shape (frames, height, width, 3)."""
    frames_per_second: float
    """Of these frames, not of the film."""


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """Sound in one channel."""

    samples: NDArray[np.float32]
    """From -1 to 1, shape (samples,)."""
    sample_rate: int
    """Samples a second."""


Media = Image | Video | Audio


def values_of(medium: Media) -> NDArray[np.uint8] | NDArray[np.float32]:
    """The array that holds a medium."""
    if isinstance(medium, Audio):
        return medium.samples
    return medium.pixels if isinstance(medium, Image) else medium.frames


KINDS: dict[type[Media], MediaKind] = {Image: "image", Video: "video", Audio: "audio"}


def digest_of(medium: Media) -> bytes:
    """Stands for all that a model computes with: 32 bytes, at about a gigabyte a second."""
    # A cryptographic hash, because a collision would show one caller's picture to another.
    digest = hashlib.blake2b(digest_size=32, person=b"isogloss-media")
    values = values_of(medium)
    digest.update(f"{KINDS[type(medium)]} {values.shape} {_rate(medium)!r};".encode())
    digest.update(np.ascontiguousarray(values).data.cast("B"))
    return digest.digest()


def _rate(medium: Media) -> float:
    if isinstance(medium, Audio):
        return medium.sample_rate
    return medium.frames_per_second if isinstance(medium, Video) else 0.0


@dataclass(frozen=True, slots=True)
class VideoPlan:
    """Which frames of a film to take, and how large."""

    frames: tuple[int, ...]
    """Numbers of frames, ascending."""
    height: int
    width: int
    frames_per_second: float
    """Of the frames taken."""


class MediaRefused(Exception):
    """The media cannot go where the prompt wants them. The text is safe to log."""

    def __init__(self, text: str, medium: int | None = None) -> None:
        super().__init__(text)
        self.medium = medium
        """Which of several media would be of no use in any place; None if their places are at fault."""


class MediaInput:
    """The media of one prompt, made ready by the engine that gets them."""

    __slots__ = ("digests",)

    def __init__(self, digests: Sequence[bytes] = ()) -> None:
        self.digests = digests
        """One for each medium, in the order of the prompt. Prompts share a KV cache up to the first that differs."""


@dataclass(frozen=True, slots=True)
class PlacedMedia:
    """A prompt with its media in their places."""

    tokens: list[int]
    """The prompt with each placeholder written out to as many tokens as its medium takes."""
    input: MediaInput
    """For `GenerationRequest.media`, together with these tokens."""


class MediaProcessor(Protocol):
    """What a model wants media to be like. Safe to call from several threads."""

    @property
    def kinds(self) -> frozenset[MediaKind]:
        """What the model takes."""
        ...

    @property
    def sample_rate(self) -> int:
        """Samples a second that sound must have."""
        ...

    @property
    def longest_audio(self) -> float:
        """Seconds of sound that the model hears; what comes later is cut off."""
        ...

    def image_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width that a picture of this size must have. Raises MediaRefused for one of no use."""
        ...

    def video_plan(self, frames: int, frames_per_second: float, height: int, width: int) -> VideoPlan:
        """What to take of a film. Raises MediaRefused for one of no use."""
        ...

    def place(self, tokens: Sequence[int], media: Sequence[Media]) -> PlacedMedia:
        """Write out the placeholders of a prompt, the first for the first medium. Cheap: it counts and copies nothing.

        `media` have the sizes that this processor asked for. Raises MediaRefused if the prompt has not exactly one
        placeholder of the right kind for each of them, or for a `medium` of which nothing would be left (too short).
        """
        ...
