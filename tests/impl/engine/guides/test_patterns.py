"""Which patterns are broken although the library takes them."""

from __future__ import annotations

import re
import warnings
from itertools import product

import pytest
from isogloss.engine.guides.patterns import is_flawed
from support.growth import grows_linearly

PIECES = ("a", "*", "+", "?", "{2}", "{1,}", "(", ")", "|", "(?:", "[*+]", "[^]]", r"\*", r"\x41", "]")


def complaint(pattern: str) -> str | None:
    """Python's own."""
    with warnings.catch_warnings(action="ignore"):
        try:
            re.compile(pattern)
        except re.error as error:
            return error.msg
    return None


def test_repetitions_of_repetitions_are_those_that_python_refuses() -> None:
    patterns = ["".join(pieces) for count in range(1, 5) for pieces in product(PIECES, repeat=count)]
    told = {pattern: complaint(pattern) for pattern in patterns}
    judged = {pattern: said for pattern, said in told.items() if said in (None, "multiple repeat")}
    assert {pattern for pattern in judged if is_flawed(pattern)} == {pattern for pattern in judged if judged[pattern]}
    assert sum(said is not None for said in judged.values()) > 100


@pytest.mark.parametrize(
    "pattern", [r"\p{L}+", r"\x{41}{2}", r"\\*", "a{b}*", "[[:alpha:]]+", "(?i)a", "(?<n>a)?", "a*?", "a++"]
)
def test_others_are_left_to_the_library(pattern: str) -> None:
    assert not is_flawed(pattern)


@pytest.mark.parametrize("piece", ["[", r"\p{", "a*", "(", "{"])
def test_the_cost_grows_linearly(piece: str) -> None:
    assert grows_linearly(lambda count: is_flawed(piece * count), 8192, 65536)
