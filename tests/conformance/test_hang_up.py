"""Whether a slot is free again is judged rightly, also where others use the server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.streams import hang_up
from isogloss_conformance.streams.hang_up import RUNNING, HangUp


class Client:
    """A server whose gauge shows what it is told to."""

    def __init__(self, figures: Iterator[float | None] | None = None) -> None:
        self._figures = figures
        self._held = 0

    def ask_root(self, path: str) -> Any:
        figure = self._held if self._figures is None else next(self._figures)
        return SimpleNamespace(content=b"" if figure is None else f"# x\n{RUNNING} {figure}\n".encode())

    def record(self, request: object, events: int) -> None:
        """Whoever hangs up keeps a slot, where no figures are told."""
        self._held += 1

    def curl(self, request: object) -> str:
        return "curl"


def looked(client: Client, *, scripted: bool = True) -> Outcome:
    session: Any = SimpleNamespace(client=client, facts=SimpleNamespace(scripted=scripted))
    streamer: Any = SimpleNamespace(request=lambda *script, **fields: None)
    return HangUp(session, streamer).look()


@pytest.mark.parametrize(
    ("figures", "status"),
    [
        (chain((0, 0), (1, 1, 0)), Status.PASS),
        (chain((2, 2), (3, 2)), Status.PASS),
        (chain((2, 2), (3, 1)), Status.PASS),  # another one has ended as well
        (chain((0,), repeat(3)), Status.PASS),  # another one has begun before
        (chain((0, 0), repeat(5)), Status.SKIP),
        (chain((0, 0), (1, 2), repeat(1)), Status.SKIP),
        (repeat(None), Status.SKIP),
    ],
)
def test_others_are_no_fault(figures: Iterator[float | None], status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang_up, "FREE_WITHIN_S", 0.5)
    assert looked(Client(figures)).status is status


def test_a_slot_that_is_held_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang_up, "FREE_WITHIN_S", 0.1)
    assert looked(Client()).status is Status.FAIL
    assert looked(Client(), scripted=False).status is Status.SKIP
