"""Bodies of operations without one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from isogloss.web.errors import ClientGone
from isogloss.web.interrupt import Interruptible
from isogloss.web.limits.unread import UnreadBody
from isogloss.web.state import KEY, RequestState
from isogloss_spec import Fault

LIMIT = 8


class Inner:
    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1


async def _run(parts: list[bytes | None], declared: int | None = None) -> int:
    """How often the inner app was called. None stands for a disconnect; behind the parts nothing comes."""
    headers = {} if declared is None else {b"content-length": b"%d" % declared}
    coming = iter(parts)

    async def receive() -> Any:
        for part in coming:
            if part is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": part, "more_body": part != b""}
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        raise AssertionError

    running: set[Interruptible] = set()
    inner = Inner()
    state = RequestState("id", "/", headers, Fault("not_found"), "id")
    try:
        await UnreadBody(inner, LIMIT, 0.05, running)({KEY: state}, receive, send)
    finally:
        assert running == set()
    return inner.calls


@pytest.mark.parametrize("parts", [[b""], [b"12345678", b""], [b"1234", b"5678", b""]])
async def test_what_fits_is_dropped_and_the_request_handed_on(parts: list[bytes | None]) -> None:
    assert await _run(parts) == 1


@pytest.mark.parametrize(("parts", "declared"), [([], 9), ([b"123456789"], None), ([b"1234", b"56789"], None)])
async def test_what_does_not_fit_is_refused_at_once(parts: list[bytes | None], declared: int | None) -> None:
    with pytest.raises(Fault, match="body_too_large"):
        await _run(parts, declared)


async def test_a_body_that_does_not_come() -> None:
    with pytest.raises(Fault, match="timeout"):
        await _run([b"1"], 8)


async def test_a_caller_that_leaves() -> None:
    with pytest.raises(ClientGone):
        await _run([b"1", None], 8)
