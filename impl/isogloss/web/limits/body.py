"""How large a body may be."""

from __future__ import annotations

from collections.abc import Mapping

from isogloss_spec import Fault
from starlette.types import Receive

from isogloss.web.errors import ClientGone


class BodyReader:
    """Reads a whole body of at most `limit` bytes.

    Raises `body_too_large` as soon as the declared or the received size says so, or ClientGone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The bytes of the body."""
        # The HTTP parser has checked that the length is a number.
        self._check(int(headers.get(b"content-length", b"0")))
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._check(size)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise Fault("body_too_large", values={"limit": self._limit})
