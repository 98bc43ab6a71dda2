from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss.engine.stops import StopMatcher

TEXTS = st.text(alphabet="ab🦊", max_size=12)
STOPS = st.lists(st.text(alphabet="aab🦊", min_size=1, max_size=4), min_size=1, max_size=3)


def first_match(text: str, stops: list[str], armed_from: int = 1) -> tuple[int, str] | None:
    """End and stop string of the first match that ends at character `armed_from` or later."""
    for end in range(max(armed_from, 1), len(text) + 1):
        hits = [stop for stop in stops if text[:end].endswith(stop)]
        if hits:
            return end, max(hits, key=len)
    return None


def feed(matcher: StopMatcher, pieces: list[str], armed_from: int = 0) -> list[str]:
    shown = []
    for number, piece in enumerate(pieces):
        shown.append(matcher.feed(piece, armed=number >= armed_from))
        if matcher.matched is not None:
            return shown
    return [*shown, matcher.flush()]


@given(st.lists(TEXTS, max_size=8), STOPS, st.booleans(), st.integers(0, 4))
def test_pieces_equal_the_reference_on_the_whole_text(pieces, stops, include, armed_from):
    text = "".join(pieces)
    matcher = StopMatcher(stops, include=include)
    shown = "".join(feed(matcher, pieces, armed_from))
    match = first_match(text, stops, len("".join(pieces[:armed_from])) + 1)
    if match is None:
        assert (shown, matcher.matched) == (text, None)
    else:
        end, stop = match
        assert matcher.matched == stop
        assert shown == text[: end if include else end - len(stop)]


@given(st.lists(TEXTS, min_size=1, max_size=8), STOPS)
def test_nothing_is_held_that_cannot_become_a_stop(pieces, stops):
    matcher = StopMatcher(stops)
    text = shown = ""
    for piece in pieces:
        shown += matcher.feed(piece)
        text += piece
        if matcher.matched is not None:
            return
        held = text[len(shown) :]
        assert not held or any(stop.startswith(held) for stop in stops)


@pytest.mark.parametrize(
    ("stops", "pieces", "shown", "matched"),
    [
        (["ple tree"], ["A tall ap", "ple", " tree"], ["A tall a", "p", ""], "ple tree"),
        (["<|end|>"], ["a <|", "en", "d of"], ["a ", "", "<|end of", ""], None),
        (["STOP"], ["one STOPthree"], ["one "], "STOP"),
        (["bc", "abcd"], ["abcd"], ["a"], "bc"),
        (["b", "ab"], ["ab"], [""], "ab"),
        (["aab"], ["aa", "ab"], ["", "a"], "aab"),
        (["🦊!"], ["x🦊", "!"], ["x", ""], "🦊!"),
        ([""], ["ab"], ["ab", ""], None),
    ],
)
def test_examples(stops, pieces, shown, matched):
    matcher = StopMatcher(stops)
    assert feed(matcher, pieces) == shown
    assert matcher.matched == matched


def test_an_armed_match_may_overlap_one_that_passed_unarmed():
    matcher = StopMatcher(["aa"])
    assert [matcher.feed("aa", armed=False), matcher.feed("a")] == ["a", ""]
    assert matcher.matched == "aa"


def test_a_long_stop_string_costs_nothing_before_it_begins():
    matcher = StopMatcher(["zq" * 16000])
    assert [matcher.feed(text) for text in ("All", " good", ".")] == ["All", " good", "."]
    assert len(matcher._scanners[0]._borders) == 2
