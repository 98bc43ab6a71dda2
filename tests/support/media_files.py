"""Small files of every format that requests may name."""

from __future__ import annotations

import io
from typing import Any

import av
import numpy as np
import soundfile
from isogloss.engine.media import VideoPlan
from PIL import Image as Pillow

RATE = 10
"""Frames a second of the films."""
_CODECS = {"mp4": ("mp4", "mpeg4"), "avi": ("avi", "mpeg4"), "wmv": ("asf", "wmv2")}


def picture(format_: str = "png", size: tuple[int, int] = (60, 40), color: object = "red", **options: Any) -> bytes:
    """One colour; `size` is width and height."""
    file = io.BytesIO()
    Pillow.new("RGB", size, color).save(file, format_, **options)  # type: ignore[arg-type]
    return file.getvalue()


def film(format_: str = "mp4", frames: int = 20, size: tuple[int, int] = (64, 48), codec: str | None = None) -> bytes:
    """Frame i is grey of 12 i."""
    file = io.BytesIO()
    muxer, usual = _CODECS[format_]
    with av.open(file, "w", format=muxer) as container:
        stream: Any = container.add_stream(codec or usual, rate=RATE)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for i in range(frames):
            pixels = np.full((size[1], size[0], 3), i * 12 % 256, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels)))
        container.mux(stream.encode(None))
    return file.getvalue()


def sound(format_: str = "wav", seconds: float = 1.0, rate: int = 8000, tone: float = 440.0, **options: Any) -> bytes:
    """A tone of half strength in the left channel and silence in the right."""
    time = np.arange(int(seconds * rate)) / rate
    channels = np.stack([np.sin(2 * np.pi * tone * time) / 2, np.zeros_like(time)], axis=1)
    file = io.BytesIO()
    soundfile.write(file, channels, rate, format=format_.upper(), **options)
    return file.getvalue()


class PlainProcessor:
    """Wants media much as they are."""

    kinds = frozenset({"image", "video", "audio"})
    sample_rate = 16_000
    longest_audio = 2.0

    def image_size(self, height: int, width: int) -> tuple[int, int]:
        return height, width

    def video_plan(self, frames: int, frames_per_second: float, height: int, width: int) -> VideoPlan:
        return VideoPlan((0, frames // 2, frames - 1), height, width, frames_per_second)

    def place(self, tokens: Any, media: Any) -> Any:
        raise AssertionError("loading media places none")
