"""Callers that leave in the middle of a stream: what they took must be free again."""

from __future__ import annotations

import time
from math import inf

from isogloss_conformance.client import Request
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session
from isogloss_conformance.streams.streamer import Streamer

FREE_WITHIN_S = 5.0
TRIES = 2
HELD_MS = 100
"""Pause between the tokens of a stream that would go on for twice as long as all tries take."""
RUNNING = "isogloss_requests_running"


class HangUp:
    """Hangs up and watches how many requests the engine is busy with, which others may use as well.

    Only a figure that stays exactly one too high, try after try, proves that a slot is held.
    """

    def __init__(self, session: Session, streamer: Streamer) -> None:
        self._session = session
        self._client = session.client
        self._streamer = streamer

    def look(self) -> Outcome:
        """Leave; and once more if the slot seems to be held."""
        if not self._session.facts.scripted or self._running() == inf:
            return _unprovable(f"it takes a script and the gauge {RUNNING} at /metrics")
        request = self._request()
        curl = self._client.curl(request)
        for _ in range(TRIES):
            before = self._running()
            self._client.record(request, events=1)
            seen = self._watched(before)
            if seen[-1] <= before:
                return Outcome(Status.PASS, "the slot is free", f"{seen[-1]} running, {before} before", curl)
            if set(seen) != {before + 1}:
                return _unprovable("the server is busy with others: the number of running requests moves by itself")
        running = f"{seen[-1]} running, {before} before"
        return Outcome(Status.FAIL, f"the slot is free within {FREE_WITHIN_S:g} s", running, curl)

    def _request(self) -> Request:
        tokens = int(2 * TRIES * FREE_WITHIN_S * 1000 / HELD_MS)
        return self._streamer.request({"prefer_tokens": ["a"], "delay_ms_each": HELD_MS}, max_tokens=tokens)

    def _watched(self, before: float) -> list[float]:
        """What the gauge shows until it has fallen, or the time is over."""
        seen: list[float] = []
        deadline = time.monotonic() + FREE_WITHIN_S
        while not seen or (seen[-1] > before and time.monotonic() < deadline):
            time.sleep(0.05)
            seen.append(self._running())
        return seen

    def _running(self) -> float:
        """Requests that the engine is busy with; infinite if the server does not say."""
        lines = self._client.ask_root("/metrics").content.decode("utf-8", "replace").splitlines()
        found = [line.rsplit(" ", 1)[1] for line in lines if line.startswith(RUNNING)]
        return sum(map(float, found)) if found else inf


def _unprovable(reason: str) -> Outcome:
    return Outcome(Status.SKIP, got=f"unprovable: {reason}")
