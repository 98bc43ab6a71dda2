"""What a caller asks of this package, and what it gets back.

A medium comes as one of two sources: a reference (an address, a path, or a text that holds the bytes), or bytes that
the caller knows to be inline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from isogloss.engine.media import MediaKind

MediaReason = Literal[
    "not_allowed",
    "not_found",
    "unreachable",
    "timeout",
    "too_large",
    "wrong_format",
    "broken",
    "too_many_pixels",
    "too_long",
    "too_complex",
    "no_room",
    "busy",
]
"""Why a medium cannot be used.

not_allowed: an address, host or path that this server does not read. not_found: no such file in the media folder.
unreachable: its host does not answer with it. timeout: nor in time. too_large: more bytes than it may have.
wrong_format: not one of the kind's formats. broken: of a format, and cannot be decoded. too_many_pixels, too_long: more
than this server decodes. too_complex: takes too much work or memory to decode. no_room: the server's disk is too full.
busy: the server has too many media in work; a later try may succeed.
"""

REASONS: frozenset[str] = frozenset(get_args(MediaReason))

FORMATS: Mapping[MediaKind, frozenset[str]] = {
    "image": frozenset({"jpeg", "png"}),
    "video": frozenset({"mp4", "avi", "wmv"}),
    "audio": frozenset({"mp3", "wav", "flac"}),
}
"""The formats that this package tells apart and decodes."""


class MediaError(Exception):
    """A medium cannot be used. Its text is the reason alone, and safe to log and to send."""

    def __init__(self, reason: MediaReason) -> None:
        super().__init__(reason)
        self.reason: MediaReason = reason


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a medium is, as a request writes it.

    An http(s) address, a path (absolute, or relative to the media folder), the same behind `file://`, a base64
    `data:` address, or bare base64 of one of the formats that the rules take so.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Inline:
    """A medium written out in a request."""

    base64: str
    format: str
    """What the request calls it: one of the rules' formats. The bytes decide what it is."""


MediaSource = Reference | Inline


@dataclass(frozen=True, slots=True)
class MediaRules:
    """What a medium may be at its place in a request."""

    kind: MediaKind
    max_bytes: int
    """Of the file, before it is decoded."""
    formats: Mapping[str, str]
    """Formats of the kind, each with its MIME type in `data:` addresses."""
    bare: Mapping[str, str] = field(default_factory=dict)
    """Formats that a reference may also write as base64 and nothing around it, each with how that begins."""

    def __post_init__(self) -> None:
        if unknown := sorted(self.formats.keys() - FORMATS[self.kind]):
            raise ValueError(f"no decoder for {self.kind} formats: {', '.join(unknown)}")
        if not self.bare.keys() <= self.formats.keys():
            raise ValueError("bare formats must be among the formats")


class MediaBudget:
    """Bytes that all media of one request may have together. For one event loop."""

    def __init__(self, total: int) -> None:
        self._left = total

    def take(self, size: int) -> None:
        """Count bytes of one medium. Raises MediaError: too_large."""
        self._left -= size
        if self._left < 0:
            raise MediaError("too_large")
