"""Compiling a grammar within limits, and trying it out before anyone depends on it."""

from __future__ import annotations

import random
import time

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from numpy.typing import NDArray

from isogloss.engine.api import Guide, GuideError, GuideFlaw
from isogloss.engine.guides.composite import composed
from isogloss.engine.guides.grammar import grammar_of

LIMITS = LLParserLimits(
    max_items_in_row=20_000,
    max_lexer_states=20_000,
    max_grammar_size=200_000,
    verbose_errors=False,
)
"""The rest is llguidance's own: its fuel allows 20 ms for building a lexer and 15 ms a step."""

SLOWEST_MASK = 0.15
"""Seconds of computing. Masks are made between the steps of all requests; usual ones take a ten thousandth."""

_WALKS = 3
_STEPS = 12

_SIGNS: tuple[tuple[str, GuideFlaw], ...] = (
    ("unsatisfiable", "unsatisfiable"),
    ("noextension", "unsatisfiable"),
    ("unimplemented", "unsupported"),
    ("unknown format", "unsupported"),
    ("not supported", "unsupported"),
    ("too large", "too_complex"),
    ("too many", "too_complex"),
    ("too deep", "too_complex"),
    ("too big", "too_complex"),
    ("limit", "too_complex"),
    ("unable to determine", "too_complex"),
    ("fuel exhausted", "too_complex"),
    ("parse error", "invalid"),
    ("syntax error", "invalid"),
)
"""What the library's messages hold, and what it means. The messages themselves quote the request."""


def flaw_in(message: str, default: GuideFlaw) -> GuideFlaw:
    """What a message of llguidance complains about."""
    lower = message.lower()
    return next((flaw for sign, flaw in _SIGNS if sign in lower), default)


def compiled(tokenizer: LLTokenizer, grammar: str) -> LLMatcher:
    """A matcher at the start of a grammar; it may be in an error state."""
    return LLMatcher(tokenizer, grammar, log_level=0, limits=LIMITS)


def tried_grammar(tokenizer: LLTokenizer, guide: Guide) -> str:
    """The grammar of a guide that compiles, allows something, and allows it quickly. Raises GuideError."""
    default: GuideFlaw = "unsupported" if guide.kind in ("json_schema", "composite") else "invalid"
    for part in (guide, *guide.parts):
        if part.whitespace:
            _check_whitespace(tokenizer, part.whitespace)
    for part in guide.parts:
        if part.kind == "grammar":
            _check_text(tokenizer, part)
    grammar = composed(guide, tokenizer) if guide.kind == "composite" else grammar_of(guide)
    matcher = compiled(tokenizer, grammar)
    if matcher.is_error():
        raise GuideError(flaw_in(matcher.get_error(), default))
    for seed in range(_WALKS):
        _walk(matcher.deep_copy(), tokenizer.vocab_size, random.Random(seed))  # noqa: S311 (no secret)
    return grammar


def _check_whitespace(tokenizer: LLTokenizer, pattern: str) -> None:
    matcher = compiled(tokenizer, LLMatcher.grammar_from_regex(pattern))
    if matcher.is_error():
        raise GuideError(flaw_in(matcher.get_error(), "invalid"), whitespace=True)


def _check_text(tokenizer: LLTokenizer, part: Guide) -> None:
    """A grammar without any text shows at its start alone, which a walk through the whole may not reach."""
    matcher = compiled(tokenizer, grammar_of(part))
    if matcher.is_error():
        raise GuideError(flaw_in(matcher.get_error(), "invalid"))
    _walk(matcher, tokenizer.vocab_size, random.Random(0), steps=1)  # noqa: S311 (no secret)


def _walk(matcher: LLMatcher, size: int, choose: random.Random, *, steps: int = _STEPS) -> None:
    """Some random tokens. The first mask is the one that finds a grammar without any text."""
    for step in range(steps):
        begun = time.thread_time()
        allowed = allowed_ids(matcher.compute_bitmask(), size)
        if matcher.is_error():
            raise GuideError(flaw_in(matcher.get_error(), "too_complex"))
        if time.thread_time() - begun > SLOWEST_MASK:
            raise GuideError("too_complex")
        if not len(allowed):
            raise GuideError("unsatisfiable")
        if step + 1 < steps and not _advance(matcher, int(choose.choice(allowed))):
            return


def _advance(matcher: LLMatcher, token: int) -> bool:
    return matcher.consume_token(token) and not matcher.is_stopped()


def allowed_ids(mask: bytes, size: int) -> NDArray[np.intp]:
    """Token ids whose bit is set."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), count=size, bitorder="little"))
