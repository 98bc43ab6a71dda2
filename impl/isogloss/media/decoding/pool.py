"""A few decoding processes, and the queue before them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from isogloss.engine.media import Media, MediaKind, MediaProcessor
from isogloss.media.api import MediaError
from isogloss.media.decoding.process import DecodingProcess, ProcessLost
from isogloss.media.decoding.protocol import Bounds, Question
from isogloss.media.decoding.wishes import order
from isogloss.media.policy import MediaPolicy
from isogloss.media.spool import MediaFile

log = logging.getLogger(__name__)


class _Task:
    """One medium to decode."""

    def __init__(self, file: MediaFile, question: Question, processor: MediaProcessor) -> None:
        self.file = file
        self.question = question
        self.processor = processor
        self.since = time.monotonic()
        self.late = False
        """Whether it was stopped for the time it took."""
        self.unwanted = False
        """Whether it was stopped because nobody waits for it."""
        self.process: DecodingProcess | None = None

    def expire(self) -> None:
        """Its time is over."""
        self.late = True
        self._stop()

    def drop(self) -> None:
        """Nobody waits for it."""
        self.unwanted = True
        self._stop()

    def _stop(self) -> None:
        if self.process is not None:
            self.process.stop(self)


class DecoderPool:
    """Decodes media in processes of its own, which start when they are first needed."""

    def __init__(self, policy: MediaPolicy) -> None:
        self._policy = policy
        self._bounds = Bounds(
            policy.pixels, policy.video_seconds, policy.video_frames, policy.audio_seconds, policy.decode_seconds
        )
        self._threads = ThreadPoolExecutor(policy.workers, thread_name_prefix="isogloss-media")
        self._local = threading.local()
        self._lock = threading.Lock()
        self._processes: list[DecodingProcess] = []
        self._closed = False

    async def decode(self, file: MediaFile, kind: MediaKind, format_: str, processor: MediaProcessor) -> Media:
        """A medium as the processor wants it. The file is closed when nobody needs it any more.

        Raises MediaError, or what the processor raises. Cancelling takes it from the queue, or ends its process.
        """
        task = _Task(file, Question(kind, format_, self._bounds), processor)
        try:
            future = self._threads.submit(self._decoded, task)
        except RuntimeError as error:  # after `close`
            file.close()
            raise MediaError("busy") from error
        future.add_done_callback(lambda _: file.close())
        result = asyncio.wrap_future(future)
        result.add_done_callback(_look_at)
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            if future.cancelled():
                raise MediaError("busy") from None
            if not future.cancel():
                task.drop()
            raise
        finally:
            # An error that they hold leads to this frame: no circle, or all that it leads to would stay for a while.
            del future, result

    def close(self) -> None:
        """End the processes. Media that are being decoded fail."""
        with self._lock:
            self._closed = True
            self._threads.shutdown(wait=False, cancel_futures=True)
            for process in self._processes:
                process.kill()

    # -- in a thread of the pool --

    def _decoded(self, task: _Task) -> Media:
        if time.monotonic() - task.since > self._policy.queue_seconds:
            raise MediaError("busy")
        process = self._process()
        task.process = process
        timer = threading.Timer(self._policy.decode_seconds, task.expire)
        with process.working_for(task):
            timer.start()
            try:
                if task.unwanted:
                    raise MediaError("busy")
                return self._asked(process, task)
            except ProcessLost as error:
                raise self._given_up(process, task) from error
            finally:
                timer.cancel()

    def _asked(self, process: DecodingProcess, task: _Task) -> Media:
        facts = process.ask(task.question, task.file.fileno())
        try:
            ordered = order(facts, task.processor, self._policy.decoded_bytes)
        except BaseException:
            process.no_wish()
            raise
        array = ordered.array(process.wish(ordered.wish))
        process.receive_into(array)
        return ordered.finish(array)

    def _given_up(self, process: DecodingProcess, task: _Task) -> MediaError:
        process.close()
        self._local.process = None
        if self._closed or task.unwanted:
            return MediaError("busy")
        log.warning("a medium of %d bytes has ended its decoding process", task.file.size)
        return MediaError("too_complex" if task.late else "broken")

    def _process(self) -> DecodingProcess:
        """This thread's process."""
        process: DecodingProcess | None = getattr(self._local, "process", None)
        if process is None or not process.alive:
            process = self._started()
            self._local.process = process
        return process

    def _started(self) -> DecodingProcess:
        with self._lock:
            if self._closed:
                raise MediaError("busy")
            process = DecodingProcess(self._policy.decode_memory)
            self._processes = [*(other for other in self._processes if other.alive), process]
        try:
            process.start()
        except ProcessLost as error:
            process.close()
            log.error("no process for decoding media can be started")
            raise MediaError("busy") from error
        return process


def _look_at(result: asyncio.Future[Media]) -> None:
    """So that asyncio does not report how something ended that nobody waits for."""
    if not result.cancelled():
        result.exception()
