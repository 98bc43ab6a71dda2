"""Answers that are whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from starlette.types import Send

from isogloss.web.errors import RenderedError
from isogloss.web.pages import Page
from isogloss.web.state import RequestState

Headers = Iterable[tuple[bytes, bytes]]

_JSON = b"application/json"
_TEXT_TYPES = {"text/plain": b"text/plain; version=0.0.4; charset=utf-8"}
"""The only plain text we serve is Prometheus' format, whose version belongs to the type."""


def encoded_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI wants them."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def send_body(
    send: Send, state: RequestState, status: int, media_type: bytes, body: bytes, headers: Headers = ()
) -> None:
    """Send an answer with its length and the request's id."""
    state.status = status
    start = [
        (b"content-type", media_type),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", state.request_id.encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def send_reply(send: Send, state: RequestState, body: Any, media_type: str, headers: Headers = ()) -> None:
    """Send what a handler replied: JSON, or text of the operation's type."""
    if isinstance(body, str):
        text_type = _TEXT_TYPES.get(media_type) or media_type.encode()
        await send_body(send, state, 200, text_type, body.encode(), headers)
    else:
        await send_body(send, state, 200, _JSON, orjson.dumps(body), headers)


async def send_error(send: Send, state: RequestState, error: RenderedError) -> None:
    """Send a fault."""
    state.fault = error.fault
    await send_body(send, state, error.status, _JSON, error.body, error.headers)


async def send_page(send: Send, state: RequestState, page: Page) -> None:
    """Send a page."""
    await send_body(send, state, 200, page.media_type.encode(), page.body, page.headers)
