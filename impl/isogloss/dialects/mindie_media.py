"""MindIE's pictures, films and sounds: found in the messages, got, and put into their places in the prompt."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isogloss_api import document
from isogloss_api.mindie import requests
from isogloss_spec.faults import Fault, param_of
from isogloss_spec.media import MediaField, media_fields, media_limits

from isogloss.dialects.engine_call import RETRY_AFTER
from isogloss.engine.media import Media, MediaProcessor, MediaRefused, PlacedMedia, values_of
from isogloss.media.api import Inline, MediaBudget, MediaError, MediaRules, MediaSource, Reference

if TYPE_CHECKING:  # what takes decoders, which not every environment has
    from isogloss.media.loader import MediaLoader

_DOCUMENT = document("mindie")
FIELDS: Mapping[str, MediaField] = media_fields(_DOCUMENT)
"""Members of a content part that hold media."""
_RULES = {name: MediaRules(taken.kind, taken.max_bytes, taken.formats, taken.bare) for name, taken in FIELDS.items()}
_LIMITS = media_limits(_DOCUMENT)
_AT_ONCE = 4
"""Media of one request that are got at the same time, so that no request takes all workers and connections."""
_SERVERS_FAULT = ("busy", "no_room")
"""Reasons that pass by themselves."""


@dataclass(frozen=True, slots=True)
class MediaPart:
    """One medium of a request."""

    path: tuple[str | int, ...]
    """Where it stands in the body."""
    field: str
    """One of FIELDS."""
    source: MediaSource

    @property
    def address_chars(self) -> int:
        """Characters of the path or address; 0 if the medium itself stands in the request."""
        if isinstance(self.source, Inline) or FIELDS[self.field].is_data(self.source.text):
            return 0
        return len(self.source.text)


def field_of(part: requests.ContentPart) -> str | None:
    """The member of a part that holds a medium; the first if there are several."""
    return next((name for name in FIELDS if name in part.model_fields_set), None)


def media_parts(messages: Sequence[requests.Message]) -> Iterator[MediaPart]:
    """All media of a conversation, in their order."""
    for number, message in enumerate(messages):
        parts = message.content if isinstance(message.content, list) else ()
        for place, part in enumerate(parts):
            name = field_of(part)
            if name is not None:
                path = ("messages", number, "content", place, name)
                yield MediaPart(path, name, _source(getattr(part, name)))


def _source(value: str | requests.MediaObject | requests.InputAudio) -> MediaSource:
    if isinstance(value, requests.InputAudio):
        return Inline(value.data, value.format)
    return Reference(value if isinstance(value, str) else value.url)


@dataclass(frozen=True, slots=True)
class _Room:
    """What the media of one request share."""

    files: MediaBudget
    decoded: MediaBudget
    places: asyncio.Semaphore


class MediaReader:
    """Gets media for one model."""

    def __init__(self, processor: MediaProcessor, loader: MediaLoader) -> None:
        self._processor = processor
        self._loader = loader

    async def place(self, tokens: Sequence[int], parts: Sequence[MediaPart]) -> PlacedMedia:
        """Get all media and write out their placeholders in a prompt.

        Raises the fault of their field, or Fault `overloaded` while the server has no room for them. Of several
        faults, that of the first medium. Cancelling it drops what is not there yet.
        """
        media = await self._all(parts)
        try:  # in a thread, since all pixels are read to tell media apart
            return await asyncio.to_thread(self._processor.place, tokens, media)
        except MediaRefused as error:
            if error.medium is not None:
                raise _refusal(parts[error.medium], "unsuitable") from error
            raise Fault(FIELDS[parts[0].field].fault, param="messages", values={"reason": "misplaced"}) from error

    async def _all(self, parts: Sequence[MediaPart]) -> list[Media]:
        room = _Room(MediaBudget(_LIMITS.files), MediaBudget(_LIMITS.decoded), asyncio.Semaphore(_AT_ONCE))
        tasks = deque([asyncio.create_task(self._one(part, room)) for part in parts])
        media: list[Media] = []
        try:
            # Each task leaves the list before it may fail: its error leads to this frame, and a way from here back to
            # the error would keep all media until the garbage collector runs.
            while tasks:
                media.append(await tasks.popleft())
            return media
        finally:
            await _dropped(tasks)

    async def _one(self, part: MediaPart, room: _Room) -> Media:
        try:
            async with room.places:
                medium = await self._loader.load(part.source, _RULES[part.field], self._processor, room.files)
                room.decoded.take(values_of(medium).nbytes)
                return medium
        except MediaError as error:
            if error.reason in _SERVERS_FAULT:
                raise Fault("overloaded", values={"retry_after": RETRY_AFTER}) from error
            raise _refusal(part, error.reason) from error
        except MediaRefused as error:
            raise _refusal(part, "unsuitable") from error


async def _dropped(tasks: Iterable[asyncio.Task[Media]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _refusal(part: MediaPart, reason: str) -> Fault:
    fault = FIELDS[part.field].fault
    return Fault(fault, param=param_of(part.path), path=part.path, values={"reason": reason})
