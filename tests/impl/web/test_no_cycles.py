"""What a request held is freed when it ends, not when the garbage collector runs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from isogloss.web.errors import ClientGone
from isogloss_spec import Fault


@pytest.fixture
def cyclic_errors() -> Iterator[list[BaseException]]:
    """Afterwards holds the errors that only the collector frees."""
    found: list[BaseException] = []
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += [item for item in gc.garbage if isinstance(item, (Fault, ClientGone, asyncio.CancelledError))]
        assert found == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def _post(web: Any, content: Any, **headers: str) -> Any:
    client = httpx.AsyncClient(transport=httpx.ASGITransport(web.app), base_url="http://test")
    return client.post("/nim/v1/completions", content=content, headers={"Content-Type": "application/json"} | headers)


async def test_refusals(make_web: Any, cyclic_errors: Any) -> None:
    web = make_web(max_open_body_bytes=100)
    for content, status in ((b"{", 400), (b'{"model": "x", "prompt": "hi"}', 404), (b" " * 101, 503)):
        assert (await _post(web, content)).status_code == status


async def test_a_body_that_takes_too_long(make_web: Any, cyclic_errors: Any) -> None:
    class Slow(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            yield b"{"
            await asyncio.sleep(1)

    assert (await _post(make_web(body_timeout_s=0.05), Slow())).status_code == 408
