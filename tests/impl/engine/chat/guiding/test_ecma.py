"""Patterns of JSON Schema, written anew: they find what a validator of JSON Schema finds."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isogloss.engine.api import Guide, GuideError
from isogloss.engine.chat.guiding.ecma import ecma_pattern
from isogloss.engine.chat.guiding.texts import one_of_term
from support.growth import grows_linearly

PIECES = [
    *("a", "b", "0", "-", " ", "/", '"', "@", "}", "]", "é", "😀", "#", "_", "\\.", "\\/", "\\n", "\\x41", "\\u00e9"),
    *("\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "[ab]", "[^a-c]", "[\\d_-]", "[^\\W]", "[-x]", "[&&a]", "[[a]", "[^^]"),
    *("(", "(?:", "(?<n>", ")", "|", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "^", "$", "\\p{L}"),
]
TEXT = st.text(st.sampled_from(' ab0-_A/".^[&~]@}é😀\t#x\n'), max_size=4)
QUICK = settings(max_examples=60, deadline=None)


@QUICK
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), st.booleans(), st.lists(TEXT, max_size=12))
def test_a_pattern_finds_what_it_should(takes, pieces: list[str], whole: bool, texts: list[str]) -> None:
    pattern = "".join(pieces)
    pattern = f"^{pattern}$" if whole else pattern
    try:
        written = ecma_pattern(pattern)
    except GuideError:
        return
    validator = jsonschema_rs.Draft202012Validator({"pattern": pattern})
    guide = Guide("grammar", f"start: TEXT\nTEXT: /{written}/")
    for text in texts:
        assert takes(guide, text) == validator.is_valid(text), text


@pytest.mark.parametrize("line_end", ["\n", "\r", "\u2028", "\u2029"])
def test_a_dot_is_no_line_end(takes, line_end: str) -> None:
    guide = Guide("grammar", f"start: TEXT\nTEXT: /{ecma_pattern('^.$')}/")
    assert not takes(guide, line_end)
    assert takes(guide, "\x0b")


@pytest.mark.parametrize(
    ("pattern", "flaw"),
    [
        ("(?=a)b", "unsupported"),
        ("(?!a)b", "unsupported"),
        ("(?<=a)b", "unsupported"),
        ("(?i)a", "unsupported"),
        (r"(a)\1", "unsupported"),
        (r"\bfoo", "unsupported"),
        (r"\k<n>", "unsupported"),
        (r"\cJ", "unsupported"),
        (r"\ud83d", "unsupported"),
        (r"\u{110000}", "unsupported"),
        ("(^a)", "unsupported"),
        ("a^b", "unsupported"),
        ("a{,3}", "unsupported"),
        ("[]", "unsupported"),
        ("[^]", "unsupported"),
        (r"[\w-z]", "unsupported"),
        ("a++", "unsupported"),
        ("a(", "invalid"),
        ("a)|(b", "invalid"),
        ("*a", "invalid"),
        ("a|*", "invalid"),
        ("a\\", "invalid"),
        ("a**", "invalid"),
    ],
)
def test_what_is_refused(pattern: str, flaw: str) -> None:
    with pytest.raises(GuideError) as caught:
        ecma_pattern(pattern)
    assert caught.value.flaw == flaw


def test_options_stand_for_themselves(takes) -> None:
    options = ["a.b", "/x|y/", '"::= @part0', "é\n"]
    guide = Guide("grammar", f"start: TEXT\nTEXT: {one_of_term(options)}")
    assert all(takes(guide, option) for option in options)
    assert not takes(guide, "axb")


@pytest.mark.parametrize("piece", ["[a", "(", "a{", "a*", "\\d", "(?:a|"])
def test_the_cost_grows_linearly(piece: str) -> None:
    def work(count: int) -> None:
        try:
            ecma_pattern(piece * count)
        except GuideError:
            return

    assert grows_linearly(work, 2048, 16384)
