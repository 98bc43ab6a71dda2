"""A decoding process, seen from the server."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.reduction import send_handle
from typing import Any

from numpy.typing import NDArray

from isogloss.media.api import REASONS, MediaError
from isogloss.media.decoding import protocol
from isogloss.media.decoding.protocol import FACTS, Facts, Question, Wish

_WORKER = "isogloss.media.decoding.worker"
"""Named and not imported: the server itself loads no decoder."""
_START_SECONDS = 60.0
_ENVIRONMENT = frozenset({"PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "TZ"})
"""What a worker needs of the environment; keys and passwords stay here."""


class ProcessLost(Exception):
    """The process has ended, or says what makes no sense."""


class DecodingProcess:
    """A process of `worker`, and the way to it. One thread talks to it; any may kill it."""

    def __init__(self, memory: int) -> None:
        self._lock = threading.Lock()
        self._task: object = None
        self._stopped = False
        self._connection, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-P", "-m", _WORKER, str(theirs.fileno()), str(memory)]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # Decoders print what they find in files.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT} | {"OMP_NUM_THREADS": "1"},
        )
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._stopped and self._process.poll() is None

    def start(self) -> None:
        """Wait until it is ready. Raises ProcessLost if it does not become so in time."""
        with _talking():
            if not self._connection.poll(_START_SECONDS):
                raise TimeoutError
            protocol.receive(self._connection)

    @contextmanager
    def working_for(self, task: object) -> Iterator[None]:
        """While inside, `stop` with this task kills the process."""
        with self._lock:
            self._task = task
        try:
            yield
        finally:
            with self._lock:
                self._task = None

    def stop(self, task: object) -> None:
        """Kill it if it is still at that task."""
        with self._lock:
            if self._task is task:
                self._stopped = True
                self._process.kill()

    def ask(self, question: Question, file: int) -> Facts:
        """What lies in a file. Raises MediaError as the process says, or ProcessLost."""
        with _talking():
            protocol.send(self._connection, asdict(question))
            send_handle(self._connection, file, self._process.pid)
            return FACTS[question.kind](**self._answer()["facts"])

    def wish(self, wish: Wish) -> tuple[int, ...]:
        """Say what of it is wanted, and hear which shape that has. Raises as `ask` does."""
        with _talking():
            protocol.send(self._connection, {"wish": asdict(wish)})
            return tuple(int(length) for length in self._answer()["shape"])

    def no_wish(self) -> None:
        """Say that nothing of it is wanted. Raises ProcessLost."""
        with _talking():
            protocol.send(self._connection, {"wish": None})

    def receive_into(self, array: NDArray[Any]) -> None:
        """Fill an array of that shape. Raises ProcessLost."""
        with _talking():
            protocol.receive_array(self._connection, array)

    def kill(self) -> None:
        """End it, from any thread. The connection is left to the thread that may be listening to it."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it, from the thread that talks to it."""
        self.kill()
        self._connection.close()

    def _answer(self) -> dict[str, Any]:
        answer = protocol.receive(self._connection)
        if answer.get("reason") in REASONS:
            raise MediaError(answer["reason"])
        return answer


@contextmanager
def _talking() -> Iterator[None]:
    """Whatever goes wrong between the two is the process's fault."""
    try:
        yield
    except (EOFError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProcessLost from error
