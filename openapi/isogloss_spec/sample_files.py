"""Small files of media for made-up bodies, a grey picture, a grey film and silence, written out by hand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping

_SIDE = 8
_SAMPLE_RATE = 16_000
_SAMPLES = 1600
_RATE = 4
"""Frames a second."""
_FRAMES = 8


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png() -> bytes:
    """A grey square."""
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 0, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\x80" * _SIDE) * _SIDE)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _riff(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data


def _wav() -> bytes:
    """A tenth of a second of silence."""
    form = struct.pack("<HHIIHH", 1, 1, _SAMPLE_RATE, 2 * _SAMPLE_RATE, 2, 16)
    return _riff(b"RIFF", b"WAVE" + _riff(b"fmt ", form) + _riff(b"data", b"\0\0" * _SAMPLES))


def _avi() -> bytes:
    """Two seconds of grey squares, not compressed."""
    size = 3 * _SIDE * _SIDE
    main = struct.pack("<14I", 10**6 // _RATE, _RATE * size, 0, 0, _FRAMES, 0, 1, size, _SIDE, _SIDE, 0, 0, 0, 0)
    stream = struct.pack("<4s4s10I4H", b"vids", b"DIB ", 0, 0, 0, 1, _RATE, 0, _FRAMES, size, 0, 0, 0, 0, _SIDE, _SIDE)
    form = struct.pack("<IiiHHIIiiII", 40, _SIDE, _SIDE, 1, 24, 0, size, 0, 0, 0, 0)
    described = b"strl" + _riff(b"strh", stream) + _riff(b"strf", form)
    header = _riff(b"LIST", b"hdrl" + _riff(b"avih", main) + _riff(b"LIST", described))
    frames = _riff(b"LIST", b"movi" + _riff(b"00db", b"\x80" * size) * _FRAMES)
    return _riff(b"RIFF", b"AVI " + header + frames)


FILES: Mapping[str, Callable[[], bytes]] = {"png": _png, "avi": _avi, "wav": _wav}
"""Format to what writes a file of it."""
