"""Films: a few of their frames, upright, RGB, in the size that is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import av
import numpy as np
from av.container import InputContainer
from av.video.stream import VideoStream
from numpy.typing import NDArray
from PIL import Image

from isogloss.media.api import MediaError
from isogloss.media.decoding.pictures import resized
from isogloss.media.decoding.protocol import Bounds, FilmFacts, FilmWish

_DEMUXERS = {"mp4": "mp4", "avi": "avi", "wmv": "asf"}
_CODECS = frozenset(
    "h264 hevc av1 libdav1d libaom-av1 vp8 vp9 mpeg4 mpeg2video mpeg1video mjpeg h263 msmpeg4v2 msmpeg4 msmpeg4v3 wmv1"
    " wmv2 wmv3 vc1 rawvideo".split()
)
"""Decoders that are used; there are hundreds."""
# No name that stands in a file is ever opened.
_OPTIONS = {"protocol_whitelist": "none"}
_FASTEST = 1000.0
"""Frames a second; more is no film."""


class Film:
    """A film whose packets have been counted and whose first frame has been decoded."""

    def __init__(self, file: BinaryIO, format_: str, bounds: Bounds) -> None:
        self._file = file
        self._demuxer = _DEMUXERS[format_]
        self._bounds = bounds
        with self._open() as container:
            stream = _stream(container, bounds)
            self._rate = _rate(stream)
            self._count = _count(container, stream, bounds)
        if self._count / self._rate > bounds.video_seconds:
            raise MediaError("too_long")
        self._first = self._first_frame()

    @property
    def facts(self) -> FilmFacts:
        """How many frames it has, how fast, how large."""
        height, width = self._first.height, self._first.width
        if self._first.rotation % 180:
            height, width = width, height
        return FilmFacts(self._count, self._rate, height, width)

    def take(self, wish: FilmWish) -> NDArray[np.uint8]:
        """Frames, shape (frames, height, width, 3)."""
        taken = np.empty((len(wish.frames), wish.height, wish.width, 3), np.uint8)
        done = seen = 0
        frame = self._first
        with self._open() as container:
            for frame in self._frames(container):
                while done < len(taken) and wish.frames[done] == seen:
                    taken[done] = _pixels(frame, wish)
                    done += 1
                if done == len(taken):
                    return taken
                seen += 1
        # Packets may be a few more than frames; then the last frame stands still.
        if self._count - seen > max(1, self._count // 10):
            raise MediaError("broken")
        taken[done:] = _pixels(frame, wish)
        return taken

    def _first_frame(self) -> av.VideoFrame:
        with self._open() as container:
            for frame in self._frames(container):
                return frame
        raise MediaError("broken")

    def _open(self) -> InputContainer:
        self._file.seek(0)
        return av.open(self._file, "r", format=self._demuxer, options=_OPTIONS, metadata_errors="ignore")

    def _frames(self, container: InputContainer) -> Iterator[av.VideoFrame]:
        stream = _stream(container, self._bounds)
        for frame in container.decode(stream):
            if frame.width * frame.height > self._bounds.pixels:
                raise MediaError("too_many_pixels")
            yield frame


def _stream(container: InputContainer, bounds: Bounds) -> VideoStream:
    if not container.streams.video:
        raise MediaError("wrong_format")
    stream = container.streams.video[0]
    codec = stream.codec_context
    if codec is None or codec.name not in _CODECS:
        raise MediaError("wrong_format")
    if codec.width * codec.height > bounds.pixels:
        raise MediaError("too_many_pixels")
    # One thread: workers are what runs at the same time, and memory stays as it was reckoned.
    codec.thread_count = 1
    codec.options = {"max_pixels": str(bounds.pixels)}
    return stream


def _rate(stream: VideoStream) -> float:
    rate = float(stream.average_rate or stream.guessed_rate or 0)
    if not 0 < rate <= _FASTEST:
        raise MediaError("broken")
    return rate


def _count(container: InputContainer, stream: VideoStream, bounds: Bounds) -> int:
    """Frames by their packets: what a header says may be missing, wrong, or a lie."""
    count = 0
    for packet in container.demux(stream):
        if packet.is_corrupt:
            raise MediaError("broken")
        count += packet.size > 0 and not packet.is_discard
        if count > bounds.video_frames:
            raise MediaError("too_long")
    if count == 0 or count < stream.frames:
        raise MediaError("broken")
    return count


def _pixels(frame: av.VideoFrame, wish: FilmWish) -> NDArray[np.uint8]:
    turns = round(frame.rotation / 90) % 4
    height, width = (wish.width, wish.height) if turns % 2 else (wish.height, wish.width)
    return np.rot90(resized(Image.fromarray(frame.to_ndarray(format="rgb24")), height, width), turns)
