"""Whether the yardsticks of other tests measure."""

from __future__ import annotations

from support.growth import calls_of, grows_linearly


def test_growth_is_told_apart() -> None:
    assert grows_linearly(lambda size: sum(range(100 * size)), 2_000, 20_000)
    assert not grows_linearly(lambda size: sum(range(size * size)), 500, 5_000)


def test_calls_are_counted() -> None:
    def called() -> None:
        pass

    assert calls_of(lambda: [called() for _ in range(100)]) in range(100, 110)
