"""Texts in which certain tags do not occur, written without negation.

llguidance finds out slowly that nothing can follow what a negation has ruled out, where lengths are counted beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from isogloss.engine.chat.guiding.ecma import plain_pattern

_Trie: TypeAlias = "dict[str, _Trie]"

_BREAK = plain_pattern("\n")
_PLAIN = f"[^<{_BREAK}]"


def untagged(tags: Sequence[str], line_tags: Sequence[str]) -> str:
    """Terminals of Lark: `UNTAGGED` is any text with none of the `tags`, and none of the `line_tags` behind a line end.

    Each tag begins with `<` and holds no other one and no line end. So what breaks off
    the beginning of a tag can only itself begin another one, or a line.
    """
    any_line, line = _trie(tags), _trie([*tags, *line_tags])
    return "\n".join(
        [
            f"BEGUN: /<{_part(any_line)}/",
            f"BROKEN: /<{_broken(any_line)}/",
            f"ROW: (/{_PLAIN}/ | BEGUN* BROKEN)* BEGUN*",
            f"BEGUN_LINE: /<{_part(line)}/ (BEGUN* BROKEN ROW | BEGUN*)",
            f"BROKEN_LINE: (/{_PLAIN}/ | /<{_broken(line)}/) ROW",
            f"UNTAGGED: ROW (/{_BREAK}/ (BEGUN_LINE | BROKEN_LINE)?)*",
        ]
    )


def _trie(tags: Sequence[str]) -> _Trie:
    """What may follow the bracket, character by character."""
    root: _Trie = {}
    for tag in tags:
        node = root
        for char in tag[1:]:
            node = node.setdefault(char, {})
    return root


def _part(node: _Trie) -> str:
    """A part of a tag behind its bracket, without its end."""
    ways = [plain_pattern(char) + _part(more) for char, more in node.items() if more]
    return f"(?:{'|'.join(ways)})?" if ways else ""


def _broken(node: _Trie) -> str:
    """The same with a character that does not go on."""
    ways = [plain_pattern(char) + _broken(more) for char, more in node.items() if more]
    other = f"[^<{_BREAK}{plain_pattern(''.join(node))}]"
    return f"(?:{'|'.join([*ways, other])})"
