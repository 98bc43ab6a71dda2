"""A client that keeps some connections busy: each sends its next request when the answer to the last is complete."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import orjson

from benchmarks.processes import HOST

_EVENT = b"data: {"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, times in seconds from the request's first byte."""

    first_s: float
    """Until its first event; until its body is complete if it isn't a stream."""
    total_s: float
    events: int
    """Of a stream, without `[DONE]`; else 0."""
    last: bytes
    """The JSON of the last event, or the body if it isn't a stream."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a client saw."""

    seconds: float
    answers: list[Answer]

    @property
    def events(self) -> int:
        """Events of all streams."""
        return sum(answer.events for answer in self.answers)


def completion_request(body: Mapping[str, Any]) -> bytes:
    """A request for a completion, as it goes over the wire."""
    raw = orjson.dumps(body)
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Accept: */*\r\nUser-Agent: isogloss-bench\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


async def drive(port: int, requests: Iterable[bytes], connections: int) -> Load:
    """Send each request once. Raises RuntimeError for an answer that is not 200."""
    queue = iter(requests)
    begun = perf_counter()
    parts = await asyncio.gather(*(_keep_busy(port, queue) for _ in range(connections)))
    return Load(perf_counter() - begun, [answer for part in parts for answer in part])


async def _keep_busy(port: int, queue: Iterator[bytes]) -> list[Answer]:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        return [await _ask(reader, writer, request) for request in queue]
    finally:
        writer.close()
        await writer.wait_closed()


async def _ask(reader: StreamReader, writer: StreamWriter, request: bytes) -> Answer:
    begun = perf_counter()
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200 "):
        raise RuntimeError(f"not answered: {head!r} {await reader.read(500)!r}")
    if b"transfer-encoding: chunked" in head:
        return await _stream(reader, begun)
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    body = await reader.readexactly(int(length))
    seconds = perf_counter() - begun
    return Answer(seconds, seconds, 0, body)


async def _stream(reader: StreamReader, begun: float) -> Answer:
    first, events, last = 0.0, 0, b""
    while size := int(await reader.readline(), 16):
        chunk = await reader.readexactly(size + 2)
        first = first or perf_counter() - begun
        if found := chunk.count(_EVENT):
            events, last = events + found, chunk
    await reader.readline()
    start = last.rfind(_EVENT) + len(_EVENT) - 1
    return Answer(first, perf_counter() - begun, events, last[start:].partition(b"\n")[0])
