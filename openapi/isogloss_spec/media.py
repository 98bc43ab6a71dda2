"""Fields that hold pictures, films and sound (`x-media`): what they take, and values for made-up bodies."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from isogloss_spec.document import resolve
from isogloss_spec.sample_files import FILES
from isogloss_spec.types import Document, Json, Schema

Kind = Literal["image", "video", "audio"]
_DATA = "data:"


@dataclass(frozen=True, slots=True)
class MediaField:
    """What a field takes."""

    kind: Kind
    fault: str
    """Raised for what cannot be used, with the field as `param` and one of the fault's `reasons` as `reason`."""
    max_bytes: int
    """Of the file."""
    formats: Mapping[str, str]
    """Format to media type."""
    bare: Mapping[str, str] = field(default_factory=dict)
    """Formats that may stand in the field as base64 alone, and how their base64 begins."""

    def is_data(self, text: str) -> bool:
        """Whether a text is the file itself, not where it is."""
        return text[: len(_DATA)].lower() == _DATA or text.startswith(tuple(self.bare.values()))


def media_fields(document: Document) -> dict[str, MediaField]:
    """The fields of a document, by name, that hold media."""
    schemas = document["components"]["schemas"].values()
    members = chain.from_iterable(schema.get("properties", {}).items() for schema in schemas)
    found = {name: resolve(document, node) for name, node in members}
    return {name: MediaField(**node["x-media"]) for name, node in found.items() if "x-media" in node}


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """What all media of one request may have together."""

    files: int
    """Bytes of their files."""
    decoded: int
    """Bytes of their pixels and samples."""


def media_limits(document: Document) -> MediaLimits:
    """The limits of a document. Raises KeyError where no field takes media."""
    limits = document["x-limits"]
    return MediaLimits(limits["media"], limits["decoded_media"])


def accepted(schema: Schema) -> Iterator[Json]:
    """Values of a field of media, each with a small file of a format that it takes."""
    for name, media_type in schema["x-media"]["formats"].items():
        if name in FILES:
            yield _written(schema, name, media_type, FILES[name]())


def refused(schema: Schema) -> Iterator[Json]:
    """Values of a field of media whose bytes are no file of any format."""
    yield _written(schema, next(iter(schema["x-media"]["formats"])), "text/plain", b"no file")


def _written(schema: Schema, name: str, media_type: str, data: bytes) -> Json:
    text = base64.b64encode(data).decode()
    if {"data", "format"} <= schema.get("properties", {}).keys():
        return {"data": text, "format": name}
    return f"{_DATA}{media_type};base64,{text}"
