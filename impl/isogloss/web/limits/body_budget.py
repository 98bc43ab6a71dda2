"""How many bytes of bodies may be held at once."""

from __future__ import annotations

from types import TracebackType

from isogloss_spec import Fault


class BodyBudget:
    """Bounds the bytes of the bodies of all requests that are open, since what was read of a body lives as long as its
    request. Bytes that were only announced don't count: else who announces much and sends nothing would keep the others
    out."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0
        """Bytes of all shares."""

    def share(self) -> BodyShare:
        """A share for one body, empty at first."""
        return BodyShare(self)

    def take(self, size: int) -> None:
        """Count bytes in. Raises `overloaded` if there is no room for them."""
        if self.held + size > self._most:
            raise Fault("overloaded")
        self.held += size

    def give_back(self, size: int) -> None:
        """Count bytes out."""
        self.held -= size


class BodyShare:
    """What one body takes of the budget, given back at the end of the block however that comes about."""

    __slots__ = ("_budget", "_size")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._size = 0

    def __enter__(self) -> BodyShare:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._budget.give_back(self._size)
        self._size = 0

    def add(self, size: int) -> None:
        """Take room for more bytes. Raises `overloaded`."""
        self._budget.take(size)
        self._size += size
