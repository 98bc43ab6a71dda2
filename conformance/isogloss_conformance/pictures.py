"""Small pictures, films and sounds, as requests carry them."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping
from itertools import chain
from typing import Any

from isogloss_spec.document import resolve
from isogloss_spec.media import accepted

Json = Any
Colour = tuple[int, int, int]
RED, BLUE = (255, 0, 0), (0, 0, 255)
SIDE = 56
"""Pixels; no less than what a vision model looks at in one piece."""


def picture(colour: Colour = RED, side: int = SIDE) -> str:
    """A square of one colour, as a `data:` address with a PNG."""
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + bytes(colour) * side) * side)
    raw = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(raw).decode()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def samples(document: Mapping[str, Json]) -> dict[str, Json]:
    """For each member that holds a medium a value that the document accepts."""
    schemas = document["components"]["schemas"].values()
    members = chain.from_iterable(schema.get("properties", {}).items() for schema in schemas)
    nodes = {name: resolve(document, node) for name, node in members}
    found = {name: next(accepted(node), None) for name, node in nodes.items() if "x-media" in node}
    return {name: value for name, value in found.items() if value is not None}
