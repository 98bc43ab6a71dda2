"""Connections to addresses that were checked after their names were resolved, and to no others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpcore

from isogloss.media.api import MediaError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""IP addresses of a host; nothing for one that has none."""
AddressOk = Callable[[str], bool]

_TRIES = 4
"""Addresses of a host that are tried."""
_LOOKUPS = ThreadPoolExecutor(4, thread_name_prefix="isogloss-names")
"""Threads of their own: a look-up takes as long as the system likes, whoever waits, and all else would wait as well."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """IP addresses of a host, by the system."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        found = await asyncio.get_running_loop().run_in_executor(_LOOKUPS, look_up)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the very addresses that it has checked, so that a second look-up can change nothing.

    The name stays with httpcore, which sends it as `Host` and holds the certificate against it.
    """

    def __init__(self, resolve: Resolve, address_ok: AddressOk) -> None:
        self._resolve = resolve
        self._address_ok = address_ok
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore calls it so
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection. Raises MediaError: not_allowed if any address is private, or timeout or unreachable."""
        for address in (await self._checked(host, port, timeout))[:_TRIES]:
            try:
                return await self._sockets.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        raise MediaError("unreachable")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Never."""
        raise MediaError("not_allowed")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def _checked(self, host: str, port: int, seconds: float | None) -> Sequence[str]:
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._resolve(host.strip("[]"), port)
        except TimeoutError as error:
            raise MediaError("timeout") from error
        if not all(map(self._address_ok, addresses)):
            raise MediaError("not_allowed")
        return addresses
