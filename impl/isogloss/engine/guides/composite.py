"""Guides made of others: each part becomes a grammar of its own, by the same way and checks as if it stood alone."""

from __future__ import annotations

import json
import re
from typing import Any

from llguidance import LLTokenizer

from isogloss.engine.api import Guide
from isogloss.engine.guides.grammar import grammar_of, literal

_MARK = re.compile(r'("(?:[^"\\]|\\.)*")|@(marker|until)([0-9]+)')
"""References, and the texts between them, which may look like some."""


def composed(guide: Guide, tokenizer: LLTokenizer) -> str:
    """The grammar of a composite guide. Raises GuideError, and RecursionError for a part that nests deeply."""
    tokens = [_special(marker, tokenizer) for marker in guide.choices]
    texts = [literal(marker) if token is None else token for marker, token in zip(guide.choices, tokens, strict=True)]
    rules = [_until(number, text, text in tokens) for number, text in enumerate(texts)]
    lark = _MARK.sub(lambda match: match[1] or _reference(match, texts), guide.text)
    parts = [_named(f"part{number}", grammar_of(part)) for number, part in enumerate(guide.parts)]
    return json.dumps({"grammars": [{"lark_grammar": "\n".join([lark, *rules])}, *parts]})


def _special(marker: str, tokenizer: LLTokenizer) -> str | None:
    """The special token that a marker is, as Lark names it; None if it is ordinary text."""
    ids = tokenizer.tokenize_str(marker, parse_special=True)
    return f"<[{ids[0]}]>" if len(ids) == 1 and tokenizer.is_special_token(ids[0]) else None


def _reference(match: re.Match[str], texts: list[str]) -> str:
    return f"until{match[3]}" if match[2] == "until" else texts[int(match[3])]


def _until(number: int, marker: str, special: bool) -> str:
    """Ordinary text never holds a special token; other markers end it as soon as they come."""
    if special:
        return f"until{number}: /(?s:.*)/ {marker}"
    return f"until{number}[lazy]: UNTIL{number}\nUNTIL{number}: /(?s:.*)/ {marker}"


def _named(name: str, grammar: str) -> dict[str, Any]:
    """A part's grammar under a name. What the library makes for one guide is always one grammar."""
    if not grammar.lstrip().startswith("{"):
        return {"name": name, "lark_grammar": grammar}
    [only] = json.loads(grammar)["grammars"]
    return {**only, "name": name}
