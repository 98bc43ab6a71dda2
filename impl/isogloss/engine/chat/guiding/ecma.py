r"""Patterns of JSON Schema, in ECMA's syntax and with its meaning, as a regular expression of llguidance.

Only what both read alike or can be written anew: no look-around, no back references, no anchors but at the ends. What
may mean something to Lark or to Rust's syntax is written as a number, `\x{2f}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from isogloss.engine.api import GuideError
from isogloss.engine.guides.patterns import is_flawed

ANYTHING = "(?s:.*)"

_ESCAPE = (
    r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|[pP]\{[A-Za-z_=]{1,64}\}|0(?![0-9])|[^A-Za-z0-9])"
)
_ONE = rf"(?:{_ESCAPE}|\\[dDwWsStnrfv])"
_TOKEN = re.compile(
    rf"""
    (?P<group>\((?:\?:|\?<[A-Za-z_][A-Za-z0-9_]*>|(?!\?)))
    | (?P<closed>\))
    | (?P<either>\|)
    | (?P<anchor>[\^$])
    | (?P<count>(?:[*+?]|\{{[0-9]+(?:,[0-9]*)?\}}))(?:\?|(?![+*?{{]))
    | (?P<any>\.)
    | \[(?P<members>(?:\^|(?!\^))(?:{_ONE}|[^\]\\])+)\]
    | (?P<one>{_ONE}|[^\\\[(){{*+?|^$.])
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(rf"(?P<low>{_ONE}|.)-(?P<high>{_ONE}|.)|{_ONE}|.", re.DOTALL)

_SETS = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": r"\t\n\x{b}\x{c}\r\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_ANY = r"[^\n\r\x{2028}\x{2029}]"
_ATOMS = frozenset(("any", "closed", "members", "one"))


def ecma_pattern(pattern: str) -> str:
    """A regular expression for the whole of each text in which the pattern is found.

    Raises GuideError for a pattern that is broken, or that cannot be written down.
    """
    if is_flawed(pattern):
        raise GuideError("invalid")
    return f"(?:{'|'.join(_searched(branch) for branch in _branches(pattern))})"


def plain_pattern(text: str) -> str:
    """A regular expression for exactly this text."""
    return "".join(map(_char, text))


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    """Kinds and texts."""
    place = 0
    while place < len(pattern):
        match = _TOKEN.match(pattern, place)
        if match is None:
            raise GuideError("unsupported")
        place = match.end()
        assert match.lastgroup is not None
        yield match.lastgroup, match[match.lastgroup]


def _branches(pattern: str) -> list[list[tuple[str, str]]]:
    """The tokens, parted where an `|` stands outside of all groups."""
    branches: list[list[tuple[str, str]]] = [[]]
    depth = 0
    before = ""
    for kind, text in _tokens(pattern):
        depth += (kind == "group") - (kind == "closed")
        if depth < 0 or (kind == "count" and before not in _ATOMS):
            raise GuideError("invalid")
        if kind == "either" and not depth:
            branches.append([])
        else:
            branches[-1].append((kind, text))
        before = kind
    if depth:
        raise GuideError("invalid")
    return branches


def _searched(branch: list[tuple[str, str]]) -> str:
    begins = branch[:1] == [("anchor", "^")]
    ends = branch[-1:] == [("anchor", "$")]
    inner = branch[begins : len(branch) - ends]
    if any(kind == "anchor" for kind, _ in inner):
        raise GuideError("unsupported")
    written = "".join(_written(kind, text) for kind, text in inner)
    return f"{'' if begins else ANYTHING}{written}{'' if ends else ANYTHING}"


def _written(kind: str, text: str) -> str:
    if kind == "one":
        return f"[{_member(text)}]" if text[0] == "\\" else _char(text)
    if kind == "members":
        return _class(text)
    return {"group": "(?:", "any": _ANY}.get(kind, text)


def _class(members: str) -> str:
    negated = members.startswith("^")
    inner = "".join(_range(match) for match in _MEMBER.finditer(members, negated))
    return f"[{'^' * negated}{inner}]"


def _range(match: re.Match[str]) -> str:
    low, high = match["low"], match["high"]
    if low is None:
        return _member(match[0])
    if any(end[0] == "\\" and end[1] in "dDwWsSpP" for end in (low, high)):
        raise GuideError("unsupported")
    return f"{_member(low)}-{_member(high)}"


def _member(text: str) -> str:
    """One character or one named set, as a class has it."""
    kind = text[1:2]
    if text[0] != "\\":
        return _char(text)
    if kind in "pP":
        return text
    if kind.lower() in _SETS:
        inner = _SETS[kind.lower()]
        return inner if kind.islower() else f"[^{inner}]"
    if kind in "xu" and len(text) > 2:
        return _char(_chr(int(text[2:].strip("{}"), 16)))
    return _char(_CONTROLS.get(kind, kind))


def _chr(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise GuideError("unsupported")
    return chr(code)


def _char(char: str) -> str:
    return char if char.isascii() and char.isalnum() else rf"\x{{{ord(char):x}}}"
