"""What passes between the server and a decoding process: JSON, and at the end the bytes of one array.

Nothing is pickled: a worker that was taken over by a file can lie about pictures and no more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from numpy.typing import NDArray

from isogloss.engine.media import MediaKind

LONGEST = 2**22
"""Bytes of a message."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a worker refuses to decode."""

    pixels: int
    video_seconds: float
    video_frames: int
    audio_seconds: float
    decode_seconds: float


@dataclass(frozen=True, slots=True)
class Question:
    """What lies in the file whose descriptor follows."""

    kind: MediaKind
    format: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """Of a picture, turned upright."""

    height: int
    width: int


@dataclass(frozen=True, slots=True)
class FilmFacts:
    """Of a film; height and width are those of its first frame."""

    frames: int
    frames_per_second: float
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """Of sound."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PictureWish:
    """A picture in this size."""

    height: int
    width: int


@dataclass(frozen=True, slots=True)
class FilmWish:
    """Frames of a film, by their numbers, in this size."""

    frames: list[int]
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class SoundWish:
    """Sound at this rate, and no more than this."""

    sample_rate: int
    seconds: float


Facts = PictureFacts | FilmFacts | SoundFacts
FACTS: dict[MediaKind, type[PictureFacts] | type[FilmFacts] | type[SoundFacts]] = {
    "image": PictureFacts,
    "video": FilmFacts,
    "audio": SoundFacts,
}
Wish = PictureWish | FilmWish | SoundWish


def send(connection: Connection, message: Mapping[str, object]) -> None:
    """One message."""
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> dict[str, Any]:
    """One message. Raises EOFError, OSError or ValueError if none comes."""
    message: dict[str, Any] = json.loads(connection.recv_bytes(LONGEST))
    return message


def send_array(connection: Connection, array: NDArray[Any]) -> None:
    """The bytes of an array, with nothing around them."""
    left = array.data.cast("B")
    while left:
        left = left[os.write(connection.fileno(), left) :]


def receive_array(connection: Connection, array: NDArray[Any]) -> None:
    """Fill an array with as many bytes as it has, and read no more. Raises EOFError or OSError if they do not come."""
    left = array.data.cast("B")
    while left:
        got = os.readv(connection.fileno(), [left])
        if not got:
            raise EOFError
        left = left[got:]


def decode_question(message: dict[str, Any]) -> Question:
    """A message as a question."""
    return Question(message["kind"], message["format"], Bounds(**message["bounds"]))
