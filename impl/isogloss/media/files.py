"""Local files: regular ones, inside the media folder, whatever links and races say."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from isogloss.media.api import MediaError
from isogloss.media.spool import Intake, MediaFile

# Non-blocking, so that opening a FIFO returns at once; it is refused afterwards.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_local(folder: Path, path: str, intake: Intake) -> MediaFile:
    """A file of the folder; a relative path starts there.

    Raises MediaError: not_allowed for everything outside, whether it exists or not; not_found; too_large.
    """
    descriptor = _open(folder, _inside(folder, path))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise MediaError("not_found")
        intake.take(status.st_size)
        return MediaFile(os.fdopen(descriptor, "rb"), intake)
    except BaseException:
        os.close(descriptor)
        raise


def _inside(folder: Path, path: str) -> Path:
    """Where the file lies below the folder, with links resolved."""
    # First by the text alone, so that nothing outside is ever looked at, then by what is on disk.
    text = Path(os.path.normpath(folder / path))
    root = Path(os.path.realpath(folder))
    try:
        if text.is_relative_to(folder) or text.is_relative_to(root):
            return Path(os.path.realpath(text)).relative_to(root)
    except ValueError:  # a link leads outside, or the path has a NUL or is no text
        pass
    raise MediaError("not_allowed")


def _open(folder: Path, path: Path) -> int:
    """Step by step from the folder and through no link, in case one has appeared since the path was resolved."""
    descriptor = -1
    try:
        descriptor = os.open(os.path.realpath(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in path.parts:
            outer, descriptor = descriptor, os.open(part, _FLAGS, dir_fd=descriptor)
            os.close(outer)
    except OSError as error:
        with suppress(OSError):
            os.close(descriptor)
        raise MediaError("not_found") from error
    return descriptor
