"""How large a body may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isogloss_spec import Fault
from starlette.types import Receive

from isogloss.web.errors import ClientGone
from isogloss.web.limits.body_budget import BodyShare


class BodyReader:
    """Reads a whole body of at most `limit` bytes.

    Raises `body_too_large` as soon as the declared or the received size says so, or ClientGone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive, share: BodyShare) -> bytes:
        """The bytes of the body. Raises `overloaded` if the share cannot grow as much as the body does."""
        parts: list[bytes] = []

        def take(part: bytes) -> None:
            share.add(len(part))
            parts.append(part)

        await self._receive(headers, receive, take)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def drop(self, headers: Mapping[bytes, bytes], receive: Receive) -> None:
        """Let the body come and go."""
        await self._receive(headers, receive, lambda part: None)

    async def _receive(self, headers: Mapping[bytes, bytes], receive: Receive, take: Callable[[bytes], None]) -> None:
        # The HTTP parser has checked that the length is a number.
        self._check(int(headers.get(b"content-length", b"0")))
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part: bytes = message.get("body", b"")
            size += len(part)
            self._check(size)
            take(part)
            more = message.get("more_body", False)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise Fault("body_too_large", values={"limit": self._limit})
