"""What bytes are, by how they begin: no other decoder is ever asked."""

from __future__ import annotations

HEAD = 16
"""Bytes that are enough to tell."""

_ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_STARTS = {b"\xff\xd8\xff": "jpeg", b"\x89PNG\r\n\x1a\n": "png", _ASF: "wmv", b"fLaC": "flac", b"ID3": "mp3"}
_RIFF = {b"AVI ": "avi", b"WAVE": "wav"}
_LAYER_3 = 1
_QUICKTIME = b"qt  "


def sniff(head: bytes) -> str | None:
    """The name of a format, or None for one that is not known here."""
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return None if head[8:12] == _QUICKTIME else "mp4"
    for start, name in _STARTS.items():
        if head.startswith(start):
            return name
    return "mp3" if _is_mpeg_frame(head) else None


def _is_mpeg_frame(head: bytes) -> bool:
    """Whether a frame of MPEG audio, layer 3, begins here: its header has values that are reserved elsewhere."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bitrate, rate = head[2] >> 4, head[2] >> 2 & 3
    return version != 1 and layer == _LAYER_3 and bitrate != 15 and rate != 3
