"""Bodies at the end of the context: one that just fits, and one with a token more.

Prompts of token ids are as long as they look. Where a dialect has none, the server's own usage tells how long a text
is, and the rule how many tokens it takes at most.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from isogloss_spec.ledger import Entry

from isogloss_conformance.client import post
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.session import Session

Json = Any
FAULT = "context_overflow"
TOKEN = 1
"""An id that every vocabulary has."""
SOME = 64
WHOLE = 4096
"""Tokens of a prompt that a slow server reads within seconds."""
WORD = " a"
"""One token for most tokenizers, however often it stands in a row."""


class Edge:
    """The two sides of a rule about the context of one server; nothing for any other rule."""

    def __init__(self, session: Session, forecaster: Forecaster) -> None:
        self._session = session
        self._forecaster = forecaster
        self._length = session.facts.context_length

    def accepted(self, entry: Entry) -> Iterator[Json]:
        """Bodies that just fit."""
        return self._made(entry, 0)

    def refused(self, entry: Entry) -> Iterator[Json]:
        """The same with one token more."""
        return self._made(entry, 1)

    def _made(self, entry: Entry, more: int) -> Iterator[Json]:
        if entry.rule is None or entry.fault != FAULT or self._length is None:
            return
        if "prompt" in self._session.request_schema["properties"]:
            yield from self._of_tokens(entry, self._length, more)
        else:
            yield from self._of_text(entry, self._length, more)

    def _of_tokens(self, entry: Entry, length: int, more: int) -> Iterator[Json]:
        """A short prompt with a long answer, and the reverse; the latter costs nothing where it is refused."""
        sizes = [1, SOME, *([length - 1] if more or length <= WHOLE else [])]
        for size in sizes:
            body = {**self._session.minimal, "prompt": [TOKEN] * size, "max_tokens": length - size + more}
            if self._forecaster.fits(entry.id, body, size) is (not more):
                yield body

    def _of_text(self, entry: Entry, length: int, more: int) -> Iterator[Json]:
        """A text of so many tokens, if words cost one each."""
        if not more and length > WHOLE:
            return
        counts = [self._counted(words) for words in (SOME, 2 * SOME)]
        if counts[0] is None or counts[1] is None or counts[1] - counts[0] != SOME:
            return
        most = bisect_left(range(1, length + 2), True, key=lambda size: not self._fits(entry, size))
        yield self._text(SOME + most + more - counts[0])

    def _fits(self, entry: Entry, size: int) -> bool:
        return self._forecaster.fits(entry.id, self._text(1), size) is True

    def _counted(self, words: int) -> int | None:
        """How many tokens the server counts for a prompt of some words."""
        answer = self._session.client.send(post(self._session.main.path, self._text(words)))
        usage = answer.json.get("usage") if answer.status == 200 and isinstance(answer.json, dict) else None
        count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return count if isinstance(count, int) else None

    def _text(self, words: int) -> dict[str, Json]:
        messages = [{"role": "user", "content": WORD * words}]
        return {**self._session.minimal, "messages": messages, "max_tokens": 1}
