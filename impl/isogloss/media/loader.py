"""The one door of this package."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable

from isogloss.engine.media import Media, MediaProcessor, values_of
from isogloss.media import network
from isogloss.media.address import Address, is_public
from isogloss.media.api import MediaBudget, MediaError, MediaRules, MediaSource
from isogloss.media.decoding.pool import DecoderPool
from isogloss.media.fetching import Fetcher
from isogloss.media.files import open_local
from isogloss.media.inline import decoded
from isogloss.media.network import PinnedBackend, Resolve
from isogloss.media.policy import MediaPolicy
from isogloss.media.sniffing import HEAD, sniff
from isogloss.media.source import Encoded, LocalPath, place
from isogloss.media.spool import Intake, MediaFile, Room, Spool


class MediaLoader:
    """Gets and decodes media within the bounds of a policy. For one event loop.

    How names are resolved and which addresses are public is no setting; tests on one machine need to change it.
    """

    def __init__(
        self,
        policy: MediaPolicy,
        *,
        resolve: Resolve = network.resolve,
        address_ok: Callable[[str], bool] = is_public,
    ) -> None:
        self._policy = policy
        self._room = Room(policy.bytes_in_flight)
        self._decoded = Room(policy.decoded_in_flight)
        self._fetcher = Fetcher(policy, PinnedBackend(resolve, address_ok))
        self._decoders = DecoderPool(policy)
        self._loads = 0

    async def load(
        self, source: MediaSource, rules: MediaRules, processor: MediaProcessor, budget: MediaBudget | None = None
    ) -> Media:
        """A medium as the processor wants it. Raises MediaError, or MediaRefused from the processor."""
        if self._loads >= self._policy.loads:
            raise MediaError("busy")
        self._loads += 1
        try:
            file = await self._got(source, rules, budget)
            medium = await self._decoders.decode(file, rules.kind, _format(file, rules), processor)
            self._count(medium)
            return medium
        finally:
            self._loads -= 1

    def close(self) -> None:
        """End the workers. Media that are being decoded fail."""
        self._decoders.close()

    def _count(self, medium: Media) -> None:
        """Hold a medium's bytes for as long as anybody holds the medium: its request waits, perhaps, or runs."""
        values = values_of(medium)
        self._decoded.take(values.nbytes)
        weakref.finalize(values, self._decoded.give, values.nbytes).atexit = False

    async def _got(self, source: MediaSource, rules: MediaRules, budget: MediaBudget | None) -> MediaFile:
        where = place(source, rules)
        if isinstance(where, LocalPath):
            intake = Intake(rules.max_bytes, budget)
            return await asyncio.to_thread(open_local, self._policy.folder, where.path, intake)
        spool = Spool(self._policy, Intake(rules.max_bytes, budget, self._room), self._room)
        try:
            await self._fill(spool, where)
            return spool.file()
        except BaseException:
            spool.close()
            raise

    async def _fill(self, spool: Spool, where: Encoded | Address) -> None:
        if isinstance(where, Address):
            await self._fetcher.fetch(where, spool)
        else:
            await spool.write(await asyncio.to_thread(decoded, where.base64, spool.intake))


def _format(file: MediaFile, rules: MediaRules) -> str:
    name = sniff(file.head(HEAD))
    if name is None or name not in rules.formats:
        file.close()
        raise MediaError("wrong_format")
    return name
