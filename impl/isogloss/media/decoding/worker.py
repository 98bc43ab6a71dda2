"""A process that decodes media, so that a file which crashes a decoder, or swells, ends this and nothing else.

Started by `pool` with the number of a connected socket and bytes of address space that it may use. It opens no file:
each comes as a descriptor.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import Any, BinaryIO

import av
from numpy.typing import NDArray

from isogloss.engine.media import MediaKind
from isogloss.media.api import MediaError, MediaReason
from isogloss.media.decoding.films import Film
from isogloss.media.decoding.pictures import Picture
from isogloss.media.decoding.protocol import (
    FilmWish,
    PictureWish,
    Question,
    SoundWish,
    decode_question,
    receive,
    send,
    send_array,
)
from isogloss.media.decoding.sound import Sound
from isogloss.media.decoding.wholeness import is_whole

_MEDIA: dict[MediaKind, type[Picture] | type[Film] | type[Sound]] = {"image": Picture, "video": Film, "audio": Sound}
_DESCRIPTORS = 16
"""That may be open at once, beside those at the start."""


def serve(connection: Connection, memory: int) -> None:
    """Answer until the other side is gone."""
    av.logging.set_level(av.logging.PANIC)
    _set_limits(memory)
    send(connection, {})
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            question = decode_question(receive(connection))
            with os.fdopen(recv_handle(connection), "rb") as file:
                _limit_time(question.bounds.decode_seconds)
                _answer(connection, question, file)


def _set_limits(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    open_now = Path("/proc/self/fd")
    size = Path("/proc/self/statm")
    if size.exists():  # only Linux tells how much there is already
        used = int(size.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
        descriptors = max(int(entry.name) for entry in open_now.iterdir()) + _DESCRIPTORS
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))


def _limit_time(seconds: float) -> None:
    """The server kills a worker that is late; this is for when the server is gone."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(usage.ru_utime + usage.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _answer(connection: Connection, question: Question, file: BinaryIO) -> None:
    """Two answers: the facts, and the array that is then wished for."""
    medium: Picture | Film | Sound | None = None

    def opened() -> dict[str, object]:
        nonlocal medium
        medium = _open(question, file)
        return {"facts": asdict(medium.facts)}

    if not _say(connection, opened):
        return
    wish = receive(connection)["wish"]
    arrays: list[NDArray[Any]] = []

    def taken() -> dict[str, object]:
        assert medium is not None
        arrays.append(_take(medium, wish))
        return {"shape": list(arrays[0].shape)}

    if wish is not None and _say(connection, taken):
        send_array(connection, arrays[0])


def _say(connection: Connection, work: Callable[[], dict[str, object]]) -> bool:
    """Send what some work leads to; whether that is good news."""
    answer: dict[str, object]
    try:
        answer = work()
    except MediaError as error:
        answer = _reason(error.reason)
    except MemoryError:
        answer = _reason("too_complex")
    except Exception:  # decoders raise whatever a broken file leads them to
        answer = _reason("broken")
    send(connection, answer)
    return "reason" not in answer


def _reason(reason: MediaReason) -> dict[str, object]:
    return {"reason": reason}


def _open(question: Question, file: BinaryIO) -> Picture | Film | Sound:
    if not is_whole(file, question.format):
        raise MediaError("broken")
    file.seek(0)
    return _MEDIA[question.kind](file, question.format, question.bounds)


def _take(medium: Picture | Film | Sound, wish: dict[str, Any]) -> NDArray[Any]:
    if isinstance(medium, Picture):
        return medium.take(PictureWish(**wish))
    if isinstance(medium, Film):
        return medium.take(FilmWish(**wish))
    return medium.take(SoundWish(**wish))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), int(sys.argv[2]))
