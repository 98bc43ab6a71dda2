"""Many media, slow ones, deadly ones, and clients that go away."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from isogloss.media.api import Inline, MediaError, MediaRules, Reference
from isogloss.media.loader import MediaLoader
from support.media_files import PlainProcessor, picture

Make = Callable[..., MediaLoader]
PICTURE = picture()
SOURCE = Inline(base64.b64encode(PICTURE).decode(), "png")


class Slow(PlainProcessor):
    """Holds its worker until it is let go."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()
        self.then = then

    def image_size(self, height: int, width: int) -> tuple[int, int]:
        self.asked.set()
        self.go.wait(5)
        self.then()
        return height, width


async def reason(work: Any) -> str:
    with pytest.raises(MediaError) as caught:
        await work
    return caught.value.reason


def processes(loader: MediaLoader) -> list[Any]:
    return [process for process in loader._decoders._processes if process.alive]


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def list_of(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern))


def read(path: str) -> str:
    return Path(path).read_text()


def open_files() -> list[str]:
    """What this process's descriptors lead to."""
    links = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that the listing itself had
            links.append(str(path.readlink()))
    return links


async def test_a_decoder_that_dies_takes_its_medium_with_it_and_nothing_else(
    make_loader: Make, image: MediaRules
) -> None:
    loader = make_loader(workers=1)
    deadly = Slow(lambda: [each.kill() for each in processes(loader)])
    deadly.go.set()
    assert await reason(loader.load(SOURCE, image, deadly)) == "broken"
    await loader.load(SOURCE, image, PlainProcessor())


async def test_a_decoder_that_takes_too_long_is_killed(make_loader: Make, image: MediaRules) -> None:
    loader = make_loader(workers=1, decode_seconds=0.3)
    slow = Slow(lambda: time.sleep(0.5))
    slow.go.set()
    assert await reason(loader.load(SOURCE, image, slow)) == "too_complex"
    await loader.load(SOURCE, image, PlainProcessor())


async def test_who_goes_away_frees_the_worker(
    make_loader: Make, image: MediaRules, caplog: pytest.LogCaptureFixture
) -> None:
    loader = make_loader(workers=1, bytes_in_flight=2 * len(PICTURE))
    slow, waiting = Slow(), Slow()
    first = asyncio.create_task(loader.load(SOURCE, image, slow))
    second = asyncio.create_task(loader.load(SOURCE, image, waiting))
    assert await asyncio.to_thread(slow.asked.wait, 5)
    assert await reason(loader.load(SOURCE, image, PlainProcessor())) == "busy"  # no byte more
    process = processes(loader)[0]
    second.cancel()
    first.cancel()
    await asyncio.wait([first, second])
    assert first.cancelled()
    assert second.cancelled()
    assert not process.alive
    slow.go.set()
    for _ in range(200):  # until the thread that listened to it sees that it is gone
        if loader._room.free == 2 * len(PICTURE):
            break
        await asyncio.sleep(0.02)
    assert loader._room.free == 2 * len(PICTURE)
    await loader.load(SOURCE, image, PlainProcessor())
    assert not waiting.asked.is_set()
    gc.collect()
    assert not caplog.records


async def test_nobody_waits_for_a_worker_for_ever(make_loader: Make, image: MediaRules) -> None:
    loader = make_loader(workers=1, queue_seconds=0.2)
    slow = Slow(lambda: time.sleep(0.3))
    first = asyncio.create_task(loader.load(SOURCE, image, slow))
    assert await asyncio.to_thread(slow.asked.wait, 5)
    second = asyncio.create_task(loader.load(SOURCE, image, PlainProcessor()))
    await asyncio.sleep(0)
    slow.go.set()
    assert await reason(second) == "busy"
    await first


async def test_media_in_work_are_bounded_in_number(make_loader: Make, image: MediaRules) -> None:
    loader = make_loader(workers=1, loads=1)
    slow = Slow()
    first = asyncio.create_task(loader.load(SOURCE, image, slow))
    assert await asyncio.to_thread(slow.asked.wait, 5)
    assert await reason(loader.load(SOURCE, image, PlainProcessor())) == "busy"
    slow.go.set()
    await first
    await loader.load(SOURCE, image, PlainProcessor())


async def test_what_requests_hold_decoded_is_bounded_until_they_let_go(make_loader: Make, image: MediaRules) -> None:
    width, height = 60, 40
    loader = make_loader(decoded_in_flight=2 * width * height * 3)
    held = [await loader.load(SOURCE, image, PlainProcessor()) for _ in range(2)]
    assert await reason(loader.load(SOURCE, image, PlainProcessor())) == "busy"
    held.pop()
    held.append(await loader.load(SOURCE, image, PlainProcessor()))
    assert await reason(loader.load(SOURCE, image, PlainProcessor())) == "busy"


async def test_many_at_once_come_each_to_its_own(make_loader: Make, image: MediaRules) -> None:
    loader = make_loader()
    sizes = [(10 + i, 20) for i in range(30)]
    sources = [Inline(base64.b64encode(picture(size=size)).decode(), "png") for size in sizes]
    media: list[Any] = await asyncio.gather(*(loader.load(source, image, PlainProcessor()) for source in sources))
    assert [one.pixels.shape[1] for one in media] == [width for width, _ in sizes]
    assert len(loader._decoders._processes) == 2


async def test_large_media_lie_on_disk_without_a_name(
    make_loader: Make, image: MediaRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    loader = make_loader(workers=1, memory_bytes=10)
    slow = Slow()
    task = asyncio.create_task(loader.load(SOURCE, image, slow))
    assert await asyncio.to_thread(slow.asked.wait, 5)
    links = open_files()
    assert any(link.startswith(f"{tmp_path}/") and link.endswith("(deleted)") for link in links)
    slow.go.set()
    media: Any = await task
    assert media.pixels.shape == (40, 60, 3)
    assert not list_of(tmp_path, "isogloss*")


async def test_a_disk_that_is_nearly_full_is_left_alone(make_loader: Make, image: MediaRules) -> None:
    loader = make_loader(memory_bytes=10, disk_reserve=1e9)
    assert await reason(loader.load(SOURCE, image, PlainProcessor())) == "no_room"
    assert loader._room.free == loader._policy.bytes_in_flight


async def test_a_refusal_keeps_nothing_until_the_garbage_collector_runs(make_loader: Make, image: MediaRules) -> None:
    loader = make_loader(workers=1)
    broken = Inline(base64.b64encode(PICTURE[:60]).decode(), "png")
    processor = PlainProcessor()
    seen = weakref.ref(processor)
    gc.disable()
    try:
        with contextlib.suppress(MediaError):  # pytest's own way would keep the error
            await loader.load(broken, image, processor)
        del processor
        for _ in range(200):  # until the thread that decoded has let go
            if seen() is None:
                break
            await asyncio.sleep(0.01)
        assert seen() is None
    finally:
        gc.enable()


async def test_descriptors_do_not_pile_up(make_loader: Make, image: MediaRules, tmp_path: Path) -> None:
    loader = make_loader(workers=1)
    write(tmp_path / "media" / "a.png", PICTURE)
    write(tmp_path / "media" / "b.png", PICTURE[:50])
    sources = [
        SOURCE,
        Reference("a.png"),
        Reference("b.png"),
        Reference("c.png"),
        Reference("data:image/png;base64,AAAA"),
    ]
    counts = []
    for _ in range(3):
        await asyncio.gather(*(loader.load(each, image, PlainProcessor()) for each in sources), return_exceptions=True)
        counts.append(len(open_files()))
    assert counts[1] == counts[2]


async def test_workers_get_no_secrets_and_write_no_files(
    make_loader: Make, image: MediaRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOGLOSS_API_KEYS", "secret")
    loader = make_loader(workers=1)
    await loader.load(SOURCE, image, PlainProcessor())
    process = f"/proc/{processes(loader)[0]._process.pid}"
    assert "secret" not in read(f"{process}/environ")
    limits = {line[:26].strip(): line[26:].split()[0] for line in read(f"{process}/limits").splitlines()}
    assert limits["Max file size"] == "0"
    assert limits["Max core file size"] == "0"
    assert limits["Max address space"] != "unlimited"
    assert int(limits["Max open files"]) < 100


async def test_closing_ends_what_is_in_work(make_loader: Make, image: MediaRules) -> None:
    loader = make_loader(workers=1)
    slow = Slow()
    first = asyncio.create_task(loader.load(SOURCE, image, slow))
    second = asyncio.create_task(loader.load(SOURCE, image, PlainProcessor()))
    assert await asyncio.to_thread(slow.asked.wait, 5)
    loader.close()
    slow.go.set()
    assert await reason(first) == "busy"
    assert await reason(second) == "busy"
    assert await reason(loader.load(SOURCE, image, PlainProcessor())) == "busy"
    assert not processes(loader)


def test_what_a_caller_imports_loads_no_decoder() -> None:
    code = "import isogloss.media.loader, sys; print({'av', 'PIL', 'soundfile'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
