from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from isogloss.media.api import MediaRules
from isogloss.media.loader import MediaLoader
from isogloss.media.policy import MediaPolicy, parse_hosts

MIB = 2**20


@pytest.fixture(scope="session")
def image() -> MediaRules:
    return MediaRules("image", 4 * MIB, {"jpeg": "image/jpeg", "png": "image/png"}, {"jpeg": "/9j/"})


@pytest.fixture(scope="session")
def video() -> MediaRules:
    return MediaRules("video", 4 * MIB, {"mp4": "video/mp4", "avi": "video/x-msvideo", "wmv": "video/x-ms-wmv"})


@pytest.fixture(scope="session")
def audio() -> MediaRules:
    return MediaRules("audio", 4 * MIB, {"mp3": "audio/mpeg", "wav": "audio/x-wav", "flac": "audio/flac"})


@pytest.fixture
def make_loader(tmp_path: Path) -> Iterator[Callable[..., MediaLoader]]:
    """A loader of the folder `media`; the keywords are the policy's, or the loader's own."""
    loaders: list[MediaLoader] = []
    (tmp_path / "media").mkdir(exist_ok=True)

    def make(hosts: str = "", **options: Any) -> MediaLoader:
        hooks = {name: options.pop(name) for name in ("resolve", "address_ok") if name in options}
        policy = MediaPolicy(allowed_hosts=parse_hosts(hosts), folder=tmp_path / "media", **options)
        loaders.append(MediaLoader(policy, **hooks))
        return loaders[-1]

    yield make
    for loader in loaders:
        loader.close()


@pytest.fixture(scope="session")
def decoder() -> Iterator[MediaLoader]:
    """A loader that reads nothing but what is inline; starting one's processes takes half a second."""
    loader = MediaLoader(MediaPolicy(folder=Path("/nonexistent/media"), workers=1))
    yield loader
    loader.close()


@dataclass
class Site:
    """A web server of a few lines: what it answers, and what it was asked."""

    port: int = 0
    pages: dict[str, bytes] = field(default_factory=dict)
    """Path to the bytes of a whole answer."""
    heads: list[str] = field(default_factory=list)
    then: Callable[[asyncio.StreamWriter], Awaitable[None]] | None = None
    """What to do before the connection is closed."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has gone."""

    def page(self, path: str, body: bytes, status: str = "200 OK", **headers: object) -> None:
        lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
        self.pages[path] = "\r\n".join([*lines, "", ""]).encode() + body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            writer.write(self.pages[head.split()[1]])
            await writer.drain()
            if self.then is not None:
                await self.then(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            writer.close()


@pytest.fixture
def serve() -> Callable[..., Any]:
    """A site as an async context manager; `host` is where it listens."""

    @asynccontextmanager
    async def site(host: str = "127.0.0.1", port: int = 0, **options: Any) -> AsyncIterator[Site]:
        made = Site()
        server = await asyncio.start_server(made.serve, host, port, **options)
        made.port = server.sockets[0].getsockname()[1]
        try:
            yield made
        finally:
            server.close()

    return site
