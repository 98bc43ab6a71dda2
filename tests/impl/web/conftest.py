"""A web layer over fake handlers, in process and behind a real socket."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from isogloss.web.app import Limits, build_app
from isogloss.web.limits.drain import Drain
from isogloss.web.routing import Api, mounts
from isogloss.web.serving import Server, Serving, listen
from isogloss_api import document
from isogloss_api.nim import handlers as nim
from isogloss_api.runtime import Call, Framing, Measured, Reply, Stream
from isogloss_api.service import handlers as service
from isogloss_spec import Fault

SECRET = "a secret that must not be told"
COMPLETION = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": []}


class FakeNim:
    """Does what the header X-Isogloss-Do says, and counts how it ended."""

    def __init__(self) -> None:
        self.calls: list[Call[Any]] = []
        self.cancelled = 0
        self.closed = 0
        self.prompt_tokens = 1
        self.release = threading.Event()

    async def measure_create_completion(self, body: Any) -> Measured[str]:
        context = {
            "prompts": 1,
            "prompt_tokens_min": self.prompt_tokens,
            "prompt_tokens_max": self.prompt_tokens,
            "prompt_tokens_sum": self.prompt_tokens,
            "max_token_id": 1,
            "context_length": 64,
            "vocab_size": 100,
        }
        return Measured(context, "measured")  # type: ignore[arg-type]

    async def create_completion(self, body: Any, prompt: str, call: Call[Any]) -> Any:
        self.calls.append(call)
        call.headers["X-From-Handler"] = "yes"
        do = call.hints.get("x-isogloss-do", "")
        if do == "boom":
            raise RuntimeError(SECRET)
        if do == "overloaded":
            raise Fault("overloaded")
        if do == "wait":
            return await self._wait()
        if call.eff["stream"]:
            return Stream(self._counted(getattr(self, "_" + do.replace("-", "_"), self._three)()))
        return Reply(COMPLETION)

    async def list_models(self) -> Any:
        return Reply({"object": "list", "data": []})

    async def health_live(self) -> Any:
        return Reply({"object": "health.response", "message": "live"})

    async def health_ready(self) -> Any:
        return Reply({"object": "health.response", "message": "ready"})

    async def metrics(self) -> Any:
        return Reply("figure 1\n")

    async def _wait(self) -> Any:
        try:
            while not self.release.is_set():  # noqa: ASYNC110 - set from the test's thread
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Reply(COMPLETION)

    async def _counted(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        try:
            async for event in events:
                yield event
        finally:
            self.closed += 1

    async def _three(self) -> AsyncIterator[Any]:
        for number in range(3):
            yield {"number": number}

    async def _nothing(self) -> AsyncIterator[Any]:
        return
        yield

    async def _fault_first(self) -> AsyncIterator[Any]:
        raise Fault("engine_refused")
        yield

    async def _fault_late(self) -> AsyncIterator[Any]:
        yield {"number": 0}
        raise Fault("engine_failure")

    async def _boom_late(self) -> AsyncIterator[Any]:
        yield {"number": 0}
        raise RuntimeError(SECRET)

    async def _quiet_then_fault(self) -> AsyncIterator[Any]:
        await asyncio.sleep(0.2)
        raise Fault("engine_failure")
        yield

    async def _quiet(self) -> AsyncIterator[Any]:
        yield {"number": 0}
        await asyncio.sleep(0.2)
        yield {"number": 1}

    async def _silent(self) -> AsyncIterator[Any]:
        yield {"number": 0}
        await asyncio.sleep(60)

    async def _endless(self) -> AsyncIterator[Any]:
        while not self.release.is_set():
            yield {"number": 0}
            await asyncio.sleep(0.01)

    async def _burst_then_ticks(self) -> AsyncIterator[Any]:
        yield {"text": "x" * 20_000_000}
        for number in range(8):
            await asyncio.sleep(0.4)
            yield {"number": number}

    async def _flood(self) -> AsyncIterator[Any]:
        while True:
            yield {"text": "x" * 100_000}
            await asyncio.sleep(0)


class FakeService(FakeNim):
    """Told apart from the dialect by what it says of itself."""

    async def health_live(self) -> Any:
        return Reply({"object": "health.response", "message": "service live"})


@dataclasses.dataclass
class Web:
    """An app and what is behind it."""

    app: Any
    fake: FakeNim
    drain: Drain
    apis: list[Api]


def _nim_api(fake: FakeNim, body_limit: int | None, keepalive: float | None) -> Api:
    bundled = document("nim")
    if body_limit is not None:
        bundled["x-limits"] = {"body": body_limit}
    operations = [
        dataclasses.replace(row, framing=Framing("[DONE]", keepalive)) if row.framing and keepalive else row
        for row in nim.OPERATIONS
    ]
    return Api("nim", bundled, nim.Routes(fake), operations, models=frozenset({"m"}), features=frozenset())


def build_web(
    *,
    keys: tuple[str, ...] = (),
    body_limit: int | None = None,
    keepalive: float | None = None,
    default: str | None = "nim",
    **limits: Any,
) -> Web:
    """The web layer over fakes."""
    fake, drain = FakeNim(), Drain()
    dialect = _nim_api(fake, body_limit, keepalive)
    beside = Api("service", document("service"), service.Routes(FakeService()), service.OPERATIONS, models=("m",))
    served = mounts([dialect], beside, default)
    return Web(build_app(served, keys=keys, limits=Limits(**limits), drain=drain), fake, drain, [dialect, beside])


@dataclasses.dataclass
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The data of each event, comments as they are."""
        return [part.removeprefix("data: ") for part in self.body.decode().split("\n\n") if part]


class Live:
    """A server in a thread."""

    def __init__(self, web: Web, serving: Serving) -> None:
        self.web = web
        self._sock = listen("127.0.0.1", 0)
        self.port: int = self._sock.getsockname()[1]
        started = threading.Event()
        self.server = Server(web.app, serving, web.drain, started.set)
        self.thread = threading.Thread(target=self.server.run, args=([self._sock],), daemon=True)
        self.thread.start()
        assert started.wait(10)

    def stop(self) -> None:
        """Drain without patience."""
        self.web.fake.release.set()
        self.server.stop()
        self.server.stop()
        self.thread.join(10)
        assert not self.thread.is_alive()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def talk(self, raw: bytes) -> Answer:
        """Send bytes, read one answer."""
        with self.connect() as sock:
            sock.sendall(raw)
            return read_answer(sock)

    def post(self, body: Any = None, path: str = "/nim/v1/completions", **headers: str) -> Answer:
        return self.talk(post(body, path, **headers))

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        return self.talk(head(method, path, **headers))


def read_answer(sock: socket.socket) -> Answer:
    """One answer from a socket."""
    with sock.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        pairs = iter(stream.readline, b"\r\n")
        headers = {
            name.decode().lower(): value.strip().decode() for name, _, value in (p.partition(b":") for p in pairs)
        }
        if "content-length" in headers:
            return Answer(status, headers, stream.read(int(headers["content-length"])))
        chunks = []
        while size := int(stream.readline(), 16):
            chunks.append(stream.read(size))
            stream.readline()
        return Answer(status, headers, b"".join(chunks))


def head(method: str, path: str, **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: test"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def post(body: Any = None, path: str = "/nim/v1/completions", **headers: str) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps({"model": "m", "prompt": "hi"} | (body or {})).encode()
    return head("POST", path, **{"Content_Type": "application/json", "Content_Length": str(len(raw))} | headers) + raw


@pytest.fixture
def make_web() -> Callable[..., Web]:
    """A function that builds the web layer: keys, body limit, keepalive time, default dialect, limits."""
    return build_web


@pytest.fixture
def make_live() -> Iterator[Callable[..., Live]]:
    """A function that starts a server; takes what `make_web` takes, and `serving`."""
    started: list[Live] = []

    def make(*, serving: Serving | None = None, **options: Any) -> Live:
        started.append(Live(build_web(**options), serving or Serving()))
        return started[-1]

    yield make
    for live in started:
        live.stop()


@pytest.fixture(scope="session")
def live() -> Iterator[Live]:
    """A server with default settings, shared: its counters count for all tests."""
    server = Live(build_web(), Serving())
    yield server
    server.stop()


@pytest.fixture
def wire() -> Any:
    """The helpers of this module, for tests that write bytes."""

    class Wire:
        head = staticmethod(head)
        post = staticmethod(post)
        read = staticmethod(read_answer)
        secret = SECRET

    return Wire
