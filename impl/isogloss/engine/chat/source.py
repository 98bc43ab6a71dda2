"""Text that arrives in parts, and generators that read it from its front."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")

Read = Generator[None, None, T]
"""Reads from a source: yields where it needs more text, returns what it has found."""

Sink = Callable[[str], None]

_BLANKS = re.compile(r"\s+")


def ignore(text: str) -> None:
    """A sink for what nobody wants."""


class Markers:
    """Texts to look for, in one search."""

    __slots__ = ("_beginnings", "_pattern")

    def __init__(self, *markers: str) -> None:
        self._pattern = re.compile("|".join(map(re.escape, markers)))
        beginnings = {marker[:size] for marker in markers for size in range(1, len(marker))}
        self._beginnings = tuple(sorted(beginnings, key=len, reverse=True))

    def find(self, text: str, start: int) -> int | None:
        """Where the first of them begins, at `start` or later."""
        match = self._pattern.search(text, start)
        return match.start() if match else None

    def held(self, text: str, start: int) -> int:
        """How many characters at the end of the text, from `start` on, may be the beginning of one of them."""
        if not text.endswith(self._beginnings, start):
            return 0
        return next(len(part) for part in self._beginnings if text.endswith(part, start))


class Source:
    """The text of one answer. What is held between two parts is never longer than a marker or a name."""

    __slots__ = ("_at", "_ended", "_marked", "_text")

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._ended = False
        self._marked: list[str] | None = None

    def add(self, text: str) -> None:
        """The next part."""
        self._text = self._text[self._at :] + text
        self._at = 0

    def close(self) -> None:
        """No part comes any more."""
        self._ended = True

    def mark(self) -> None:
        """Remember what is taken from here on."""
        self._marked = []

    def marked(self) -> str:
        """What was taken since the mark, which is gone then; nothing if there is none."""
        taken, self._marked = self._marked, None
        return "".join(taken or ())

    def take(self, size: int) -> str:
        """So many characters, or what there is."""
        taken = self._text[self._at : self._at + size]
        self._at += len(taken)
        if self._marked is not None:
            self._marked.append(taken)
        return taken

    def take_rest(self) -> str:
        """All that is there."""
        return self.take(len(self._text))

    def take_all(self, pattern: re.Pattern[str]) -> str:
        """What the pattern matches of the text that is there."""
        return self.take(len(self.seen(pattern)))

    def seen(self, pattern: re.Pattern[str]) -> str:
        """The same, which stays."""
        match = pattern.match(self._text, self._at)
        return match[0] if match else ""

    def peek(self) -> Read[str]:
        """The next character, which stays; empty at the end."""
        while self._at == len(self._text):
            if self._ended:
                return ""
            yield
        return self._text[self._at]

    def pair(self) -> Read[str]:
        """The next two characters, which stay; fewer at the end."""
        while len(self._text) - self._at < 2 and not self._ended:
            yield
        return self._text[self._at : self._at + 2]

    def blanks(self, sink: Sink = ignore) -> Read[None]:
        """All blanks up to the next other character."""
        while (yield from self.peek()).isspace():
            sink(self.take_all(_BLANKS))

    def skip(self, characters: str) -> Read[None]:
        """Take all of these characters."""
        while (char := (yield from self.peek())) and char in characters:
            self.take(1)

    def until(self, markers: Markers, sink: Sink, *, cut: bool = False) -> Read[bool]:
        """All text up to the next marker, which stays; False if none comes.

        With `cut`, what may be the beginning of a marker at the end of the answer is dropped.
        """
        while True:
            found = markers.find(self._text, self._at)
            end = len(self._text) - markers.held(self._text, self._at) if found is None else found
            if end > self._at:
                sink(self.take(end - self._at))
            if found is not None:
                return True
            if self._ended:
                (ignore if cut else sink)(self.take_rest())
                return False
            yield

    def literal(self, text: str, *, cut: bool = False) -> Read[bool]:
        """Take this text if it comes next, and with `cut` also what the end of the answer leaves of it."""
        while True:
            there = self._text[self._at : self._at + len(text)]
            if there == text or (cut and self._ended and text.startswith(there)):
                self.take(len(there))
            if self._ended or there == text or not text.startswith(there):
                return there == text
            yield

    def before(self, end: str, longest: int) -> Read[str | None]:
        """The text before `end`, both taken; None if more than so many characters come before it."""
        while True:
            found = self._text.find(end, self._at, self._at + longest + len(end))
            if found >= 0:
                text = self.take(found - self._at)
                self.take(len(end))
                return text
            if self._ended or len(self._text) - self._at >= longest + len(end):
                return None
            yield

    def matching(self, pattern: re.Pattern[str], longest: int) -> Read[str | None]:
        """The text of a pattern, taken; None if it does not come within so many characters."""
        while True:
            match = pattern.match(self._text, self._at, self._at + longest)
            if match:
                return self.take(match.end() - self._at)
            if self._ended or len(self._text) - self._at >= longest:
                return None
            yield
