"""Who may come in."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest

from isogloss_spec import Fault
from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.routing import Route
from isogloss.web.state import state_of

_NAME_LENGTH = 8


class KeyRing:
    """The keys of a server, as hashes."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def name_of(self, authorization: bytes | None) -> str:
        """The name of the key in a header `Bearer KEY`: the first digits of its hash. Raises `unauthorized`.

        Hashes are compared, each with all, so the time it takes tells nothing about the keys.
        """
        scheme, _, key = (authorization or b"").partition(b" ")
        digest = sha256(key.strip()).digest()
        matches = [compare_digest(digest, known) for known in self._digests]
        if scheme.lower() != b"bearer" or not any(matches):
            raise Fault("unauthorized")
        return digest.hex()[:_NAME_LENGTH]


class Keys:
    """With keys configured, everything is guarded but the operations that the document calls public."""

    def __init__(self, app: ASGIApp, ring: KeyRing) -> None:
        self._app = app
        self._ring = ring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on if the key is good."""
        if self._ring:
            state = state_of(scope)
            if not (isinstance(state.target, Route) and state.target.operation.public):
                state.key_name = self._ring.name_of(state.headers.get(b"authorization"))
        await self._app(scope, receive, send)
