"""The bytes of media that are being got: counted, bounded, and gone with their last user."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from typing import BinaryIO

from isogloss.media.api import MediaBudget, MediaError
from isogloss.media.policy import MediaPolicy


class Room:
    """Bytes that all media in work may have together. Safe to use from several threads."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        """Bytes that may still come."""
        return self._free

    def take(self, size: int) -> None:
        """Hold so many more. Raises MediaError: busy."""
        with self._lock:
            if size > self._free:
                raise MediaError("busy")
            self._free -= size

    def give(self, size: int) -> None:
        """Let so many go."""
        with self._lock:
            self._free += size


class Intake:
    """Counts the bytes of one medium against everything that bounds them."""

    def __init__(self, limit: int, budget: MediaBudget | None = None, room: Room | None = None) -> None:
        self.size = 0
        self._limit = limit
        self._budget = budget
        self._room = room
        self._held = 0

    def expect(self, size: int) -> None:
        """Look at a size that is only announced. Raises MediaError: too_large."""
        if size > self._limit:
            raise MediaError("too_large")

    def take(self, size: int) -> None:
        """Count bytes. Raises MediaError: too_large, or busy if the server holds too many."""
        self.size += size
        self.expect(self.size)
        if self._budget is not None:
            self._budget.take(size)
        if self._room is not None:
            self._room.take(size)
            self._held += size

    def close(self) -> None:
        """Give the room back."""
        if self._room is not None:
            self._room.give(self._held)
        self._held = 0


class MediaFile:
    """A file that a decoder may read. It has no name, or lies in the media folder; closing it frees all it takes."""

    def __init__(self, file: BinaryIO, intake: Intake) -> None:
        self._file = file
        self._intake = intake

    @property
    def size(self) -> int:
        """Bytes."""
        return self._intake.size

    def fileno(self) -> int:
        """The descriptor."""
        return self._file.fileno()

    def head(self, size: int) -> bytes:
        """The first bytes; the position stays."""
        return os.pread(self.fileno(), size, 0)

    def close(self) -> None:
        """Forget it; once more does no harm."""
        self._file.close()
        self._intake.close()


class Spool:
    """Takes bytes as they come: in memory while they are few, then in a file without a name."""

    def __init__(self, policy: MediaPolicy, intake: Intake, room: Room) -> None:
        self.intake = intake
        self._policy = policy
        self._room = room
        self._on_disk = False
        self._file = _memory_file()

    async def write(self, chunk: bytes) -> None:
        """Add bytes. Raises MediaError: too_large, busy or no_room."""
        self.intake.take(len(chunk))
        try:
            if not self._on_disk and self.intake.size > self._policy.memory_bytes:
                self._file = await asyncio.to_thread(self._moved)
                self._on_disk = True
            if self._on_disk:
                # A cancelled write goes on in its thread; the lock of a buffered file makes `close` wait for it.
                await asyncio.to_thread(self._file.write, chunk)
            else:
                self._file.write(chunk)
        except OSError as error:
            raise MediaError("no_room") from error

    def file(self) -> MediaFile:
        """What came. From now on it is the caller's to close. Raises MediaError: no_room."""
        try:
            self._file.flush()
        except OSError as error:
            raise MediaError("no_room") from error
        return MediaFile(self._file, self.intake)

    def close(self) -> None:
        """Forget all of it."""
        with suppress(OSError):  # what could not be written before cannot be now
            self._file.close()
        self.intake.close()

    def _moved(self) -> BinaryIO:
        reserve = self._policy.disk_reserve * (self._room.free + self.intake.size)
        if shutil.disk_usage(tempfile.gettempdir()).free < reserve:
            raise MediaError("no_room")
        disk = _disk_file()
        with self._file as memory:
            memory.seek(0)
            shutil.copyfileobj(memory, disk)
        return disk


def _memory_file() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("isogloss-media"), "w+b")
    return _disk_file()


def _disk_file() -> BinaryIO:
    return tempfile.TemporaryFile(prefix="isogloss-media-")
