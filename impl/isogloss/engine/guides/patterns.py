"""Regular expressions of requests: what the library takes, although the languages that people know refuse it."""

from __future__ import annotations

import re

_ATOM = re.compile(r"\\(?:[pPux]\{[^}]*(?:\}|\Z)|.)|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\Z)", re.DOTALL)
"""An escape, or a class of characters. Where the end is missing, all the rest, so that nothing is read twice."""
_COUNT = r"\{\d+(?:,\d*)?\}"
_REPEATED_TWICE = re.compile(rf"(?:[*+?]|{_COUNT})(?:[?+][*+?]|[?+]?{_COUNT}|\*)")
"""A repetition of a repetition. A single `?` or `+` behind one only says how much of the text it is to take."""


def is_flawed(pattern: str) -> bool:
    """Whether a pattern is broken where the library would read something into it.

    It takes a backslash at the end for the end of the text, and `a**` for `(a*)*`.
    """
    return _ends_in_escape(pattern) or _REPEATED_TWICE.search(_ATOM.sub("a", pattern)) is not None


def _ends_in_escape(pattern: str) -> bool:
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1
