"""Event streams as they come over the wire: recorded piece by piece, then read strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = Any
_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


@dataclass(frozen=True)
class Event:
    """One event with data."""

    data: str
    at: float
    """Seconds from the request to the piece that completed the event."""

    @cached_property
    def json(self) -> Json:
        """The data as JSON; None if it is none."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Recording:
    """All that came of one stream."""

    status: int
    headers: Mapping[str, str]
    pieces: tuple[tuple[float, bytes], ...]
    """What each read returned, and seconds from the request to it."""
    trouble: str | None = None

    @cached_property
    def content(self) -> bytes:
        """All bytes."""
        return b"".join(piece for _, piece in self.pieces)

    @cached_property
    def blocks(self) -> list[tuple[float, bytes]]:
        """What stands between blank lines, each with the time at which it was complete."""
        found, start = [], 0
        for match in _BLANK_LINE.finditer(self.content):
            found.append((self._at(match.end()), self.content[start : match.start()]))
            start = match.end()
        return found

    @cached_property
    def rest(self) -> bytes:
        """What follows the last blank line: nothing, in a good stream."""
        ends = [match.end() for match in _BLANK_LINE.finditer(self.content)]
        return self.content[ends[-1] if ends else 0 :]

    @cached_property
    def events(self) -> list[Event]:
        """Events with data; those that cannot be read are left out (see `framing`)."""
        found = []
        for at, block in self.blocks:
            data = [line[5:].removeprefix(" ") for line in _lines(block) if line.startswith("data:")]
            if data:
                found.append(Event("\n".join(data), at))
        return found

    @cached_property
    def comments(self) -> int:
        """Number of comment lines."""
        return sum(line.startswith(":") for _, block in self.blocks for line in _lines(block))

    def framing(self) -> str | None:
        """What is wrong with the form of the stream, in words; None if nothing is."""
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            return f"the content type is {self.headers.get('content-type')!r}"
        if self.rest.strip():
            return f"the stream ends without a blank line, in {self.rest[-80:]!r}"
        for _, block in self.blocks:
            wrong = _wrong_block(block)
            if wrong is not None:
                return wrong
        return None

    def chunks(self, terminator: str | None) -> list[dict[str, Json]]:
        """The JSON objects of all events but the terminator."""
        values = [event.json for event in self.events if event.data != terminator]
        return [value for value in values if isinstance(value, dict)]

    def _at(self, position: int) -> float:
        seen = 0
        for at, piece in self.pieces:
            seen += len(piece)
            if seen >= position:
                return at
        return self.pieces[-1][0]


def _lines(block: bytes) -> Iterator[str]:
    yield from block.decode("utf-8", "replace").splitlines()


def _wrong_block(block: bytes) -> str | None:
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        return f"an event is not UTF-8: {block[:80]!r}"
    lines = text.splitlines()
    unknown = [line for line in lines if not line.startswith((":", "data:", "event:", "id:", "retry:"))]
    if unknown:
        return f"a line is no field of an event: {unknown[0][:80]!r}"
    if not all(line.startswith(":") for line in lines) and not any(line.startswith("data:") for line in lines):
        return f"an event has no data: {text[:80]!r}"
    if sum(line.startswith("data:") for line in lines) > 1:
        return f"one blank line must end each event: {text[:120]!r}"
    return None
