"""From a guide to a grammar of llguidance. Runs in the worker, since its input may be hostile.

The texts of errors stay here: they quote the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llguidance import LLMatcher
from llguidance.gbnf_to_lark import gbnf_to_lark

from isogloss.engine.api import Guide, GuideError
from isogloss.engine.guides.patterns import is_flawed
from isogloss.engine.guides.schema import PRIVATE, read_schema, without_idle_keywords, without_leap_seconds

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

WHITESPACE = r"[\x20\x0A\x0D\x09]{1,32}"
"""Blanks between the parts of a JSON text, unless the request says otherwise: room to indent, none to run off."""

_BLANK = r"(?:[ \t\r\n]|\\[trns]|\\x(?:20|09|0[aAdD]))"
_OF_BLANKS = re.compile(rf"(?:{_BLANK}|\[{_BLANK}+\]|\(\?:|[()|*+?]|\{{[0-9]{{0,4}},?[0-9]{{0,4}}\}})*")
"""Patterns that can match nothing but blanks."""
_ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f]")


def grammar_of(guide: Guide) -> str:
    """The grammar, not yet compiled. Raises GuideError, and RecursionError for one that nests deeply."""
    return _GRAMMARS[guide.kind](guide)


def _json_schema(guide: Guide) -> str:
    schema = without_idle_keywords(read_schema(guide.text))
    return _of_schema(without_leap_seconds(schema), guide.whitespace)


def _json_object(guide: Guide) -> str:
    return _of_schema({"type": "object"}, guide.whitespace)


def _of_schema(schema: dict[str, Any], whitespace: str | None) -> str:
    pattern = WHITESPACE if whitespace is None else whitespace
    if not _OF_BLANKS.fullmatch(pattern):
        raise GuideError("invalid", whitespace=True)
    # As overrides they also stand above what a schema's own `x-guidance` says.
    options: JsonCompileOptions = {"whitespace_flexible": bool(pattern), "lenient": False, "coerce_one_of": False}
    if pattern:
        options["whitespace_pattern"] = pattern
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)


def _regex(guide: Guide) -> str:
    if is_flawed(guide.text):
        raise GuideError("invalid")
    return LLMatcher.grammar_from_regex(guide.text)


def _choice(guide: Guide) -> str:
    return LLMatcher.grammar_from_lark("start: " + " | ".join(map(literal, guide.choices)))


def literal(text: str) -> str:
    """A text as Lark writes it."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _grammar(guide: Guide) -> str:
    if PRIVATE in guide.text or guide.text.lstrip().startswith("{"):  # the library's own form of a grammar
        raise GuideError("unsupported")
    if "::=" not in guide.text:
        return LLMatcher.grammar_from_lark(guide.text)
    try:
        return LLMatcher.grammar_from_lark(gbnf_to_lark(guide.text))
    except RecursionError:
        raise
    # The converter raises Exception itself, and IndexError where a text ends early.
    except Exception as error:
        raise GuideError("invalid") from error


_GRAMMARS: dict[str, Callable[[Guide], str]] = {
    "json_schema": _json_schema,
    "json_object": _json_object,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
}
