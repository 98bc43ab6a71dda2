"""Media from the web: a plain GET that tells the other side nothing and believes nothing it says."""

from __future__ import annotations

import asyncio
import logging
import ssl
from functools import cached_property

import httpcore

from isogloss.media.address import Address
from isogloss.media.api import MediaError
from isogloss.media.network import PinnedBackend
from isogloss.media.policy import MediaPolicy
from isogloss.media.spool import Spool

# At level debug httpcore logs addresses, which are the requests' own and go into no log.
logging.getLogger("httpcore").setLevel(logging.INFO)

_OK = 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Fetcher:
    """Downloads from the hosts that a policy allows."""

    def __init__(self, policy: MediaPolicy, backend: PinnedBackend) -> None:
        self._policy = policy
        self._backend = backend
        self._places = asyncio.Semaphore(policy.downloads)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpcore.default_ssl_context()

    async def fetch(self, address: Address, spool: Spool) -> None:
        """Put what lies at an address into a spool.

        Raises MediaError: not_allowed, for every hop alike; unreachable; timeout; what the spool raises.
        """
        self._check(address)
        try:
            async with asyncio.timeout(self._policy.fetch_seconds), self._places:
                await self._follow(address, spool)
        except (TimeoutError, httpcore.TimeoutException) as error:
            raise MediaError("timeout") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
            raise MediaError("unreachable") from error

    def _check(self, address: Address) -> None:
        if not any(rule.allows(address.host, address.port) for rule in self._policy.allowed_hosts):
            raise MediaError("not_allowed")

    async def _follow(self, address: Address, spool: Spool) -> None:
        for _ in range(self._policy.redirects + 1):
            location = await self._get(address, spool)
            if location is None:
                return
            address = address.follow(location)
            self._check(address)
        raise MediaError("unreachable")

    async def _get(self, address: Address, spool: Spool) -> str | None:
        """Where else to look, or None once all has come."""
        seconds = self._policy.connect_seconds
        idle = self._policy.idle_seconds
        limits = {"connect": seconds, "pool": seconds, "write": idle, "read": idle}
        # A pool for one request: no connection outlives the check that it stands on.
        async with (
            httpcore.AsyncConnectionPool(ssl_context=self._tls, network_backend=self._backend) as pool,
            pool.stream("GET", _url(address), headers=_headers(address), extensions={"timeout": limits}) as response,
        ):
            if response.status in _REDIRECTS:
                return _location(response)
            await self._receive(response, spool)
        return None

    async def _receive(self, response: httpcore.Response, spool: Spool) -> None:
        if response.status != _OK:
            raise MediaError("unreachable")
        length = _header(response, b"content-length")
        if length is not None:  # h11 has seen that it is a number
            spool.intake.expect(int(length))
        async for chunk in response.aiter_stream():
            await spool.write(chunk)


def _url(address: Address) -> httpcore.URL:
    host = address.host.strip("[]").encode()
    return httpcore.URL(scheme=address.scheme.encode(), host=host, port=address.port, target=address.target.encode())


def _headers(address: Address) -> list[tuple[bytes, bytes]]:
    return [
        (b"Host", address.authority.encode()),
        (b"User-Agent", b"isogloss"),
        (b"Accept", b"*/*"),
        (b"Accept-Encoding", b"identity"),
        (b"Connection", b"close"),
    ]


def _header(response: httpcore.Response, name: bytes) -> bytes | None:
    return next((value for key, value in response.headers if key.lower() == name), None)


def _location(response: httpcore.Response) -> str:
    try:
        return (_header(response, b"location") or b"").decode("ascii")
    except UnicodeDecodeError as error:
        raise MediaError("unreachable") from error
