"""Whether a file is all there, by what its container says of its own length.

Decoders tend to show what there is of a file that was cut off. Formats that say nothing (MP3, and streams whose writer
did not know) count as whole.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import BinaryIO

_ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_HEADER = 4096
_BOXES = 4096
"""Top-level boxes that are looked at."""


def is_whole(file: BinaryIO, format_: str) -> bool:
    """Whether nothing is missing at the end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return format_ not in _CHECKS or _CHECKS[format_](file, size)


def _riff(file: BinaryIO, size: int) -> bool:
    (declared,) = struct.unpack("<4xI", file.read(8))
    # Half of all numbers are kept free for writers that did not know.
    return declared >= 2**31 or int(declared) + 8 <= size + 1


def _asf(file: BinaryIO, size: int) -> bool:
    header = file.read(_ASF_HEADER)
    start = header.find(_ASF_PROPERTIES)
    fields = header[start : start + 92]
    if start < 0 or len(fields) < 92:
        return True
    declared, flags = struct.unpack("<40xQ40xI", fields)
    return bool(flags & 1) or declared <= size


def _mp4(file: BinaryIO, size: int) -> bool:
    at = 0
    for _ in range(_BOXES):
        if at >= size:
            return at == size
        file.seek(at)
        length = _box_length(file.read(16), size - at)
        if length < 8:
            return False
        at += length
    return True


def _box_length(head: bytes, rest: int) -> int:
    if len(head) < 8:
        return 0
    (length,) = struct.unpack(">I", head[:4])
    if length == 1 and len(head) == 16:
        (length,) = struct.unpack(">8xQ", head)
    return int(length) or rest


_CHECKS: dict[str, Callable[[BinaryIO, int], bool]] = {"avi": _riff, "wav": _riff, "wmv": _asf, "mp4": _mp4}
