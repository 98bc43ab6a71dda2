"""What a schema says of a text, as terms of a terminal of Lark: all of them hold for a text that is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isogloss.engine.api import GuideError
from isogloss.engine.chat.guiding.ecma import ecma_pattern, plain_pattern
from isogloss.engine.chat.guiding.formats import FORMAT_TERMS
from isogloss.engine.guides.schema import FORMATS

_LONGEST = 2**31
"""Characters: what a repetition may count to, and more than any text has."""


def text_terms(schema: Mapping[str, object]) -> list[str]:
    """Its lengths, pattern and format. Raises GuideError for what is wrong or cannot be written down."""
    found = (_length(schema), _pattern(schema.get("pattern")), _format(schema.get("format")))
    return [term for term in found if term]


def one_of_term(options: Sequence[str]) -> str:
    """One of several texts, of which there must be one."""
    if not options:
        raise GuideError("unsatisfiable")
    return f"/{'|'.join(map(plain_pattern, options))}/"


def terminated(terms: Sequence[str], end: str, terminals: str) -> str:
    """A grammar for a text for which all terms hold, which may name terminals, and its end."""
    return f"start: VALUE\nVALUE: TEXT /{plain_pattern(end)}/\nTEXT: {' & '.join(terms)}\n{terminals}"


def _length(schema: Mapping[str, object]) -> str:
    least, most = _count(schema.get("minLength"), 0), _count(schema.get("maxLength"), _LONGEST)
    if least > most:
        raise GuideError("unsatisfiable")
    if not least and most >= _LONGEST:
        return ""
    return f"/(?s:.{{{least},{'' if most >= _LONGEST else most}}})/"


def _count(value: object, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
        raise GuideError("invalid")
    return int(value)


def _pattern(pattern: object) -> str:
    if pattern is None:
        return ""
    if not isinstance(pattern, str):
        raise GuideError("invalid")
    return f"/{ecma_pattern(pattern)}/"


def _format(name: object) -> str:
    """Formats that JSON Schema does not define are remarks."""
    if name is not None and not isinstance(name, str):
        raise GuideError("invalid")
    if name not in FORMATS:
        return ""
    if name not in FORMAT_TERMS:
        raise GuideError("unsupported")
    return FORMAT_TERMS[name]
