"""Who may run: a bound on running sequences, a bound on waiting requests, an order of waiting."""

from __future__ import annotations

import asyncio
import heapq
import itertools

from isogloss.engine.api import EngineOverloaded


class Place:
    """The place of one request, waiting or running."""

    __slots__ = ("_key", "left", "seqs", "settled", "started")

    def __init__(self, seqs: int, priority: int, number: int) -> None:
        self.seqs = seqs
        """Choices that have not ended."""
        self.started = False
        self.left = False
        self.settled = asyncio.Event()
        """Set once the request has started or left."""
        self._key = (priority, number)

    def __lt__(self, other: Place) -> bool:
        return self._key < other._key


class Admission:
    """Gives out places: lower priority numbers first, equal ones in order of arrival.

    A request whose choices alone exceed the bound runs when nothing else does.
    """

    def __init__(self, max_num_seqs: int, max_waiting: int) -> None:
        self._max_num_seqs = max_num_seqs
        self._max_waiting = max_waiting
        self._queue: list[Place] = []
        self._numbers = itertools.count()
        self.running = 0
        """Requests being worked on."""
        self.waiting = 0
        """Requests accepted and not yet started."""
        self.running_seqs = 0
        """Choices of running requests that have not ended."""

    def enter(self, seqs: int, priority: int) -> Place:
        """A place for a request of so many choices. Raises EngineOverloaded."""
        place = Place(seqs, priority, next(self._numbers))
        heapq.heappush(self._queue, place)
        self.waiting += 1
        self._admit()
        if self.waiting > self._max_waiting and not place.started:
            self.leave(place)
            raise EngineOverloaded("too many requests are waiting")
        return place

    def shrink(self, place: Place, ended: int) -> None:
        """So many choices of a running request have ended; with the last one it leaves."""
        place.seqs -= ended
        self.running_seqs -= ended
        if place.seqs:
            self._admit()
        else:
            self.leave(place)

    def leave(self, place: Place) -> None:
        """Give a place back, wherever the request is. Idempotent."""
        if place.left:
            return
        place.left = True
        place.settled.set()
        if place.started:
            self.running -= 1
            self.running_seqs -= place.seqs
        else:
            self.waiting -= 1
        self._admit()

    def _admit(self) -> None:
        while self._queue and (self._queue[0].left or self._fits(self._queue[0])):
            place = heapq.heappop(self._queue)
            if not place.left:
                self._start(place)

    def _fits(self, place: Place) -> bool:
        return not self.running or self.running_seqs + place.seqs <= self._max_num_seqs

    def _start(self, place: Place) -> None:
        self.waiting -= 1
        self.running += 1
        self.running_seqs += place.seqs
        place.started = True
        place.settled.set()
