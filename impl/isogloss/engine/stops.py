"""Stop strings: found in text that comes in pieces, and held back while they may still come.

Which match wins depends on the text alone, never on how it was cut into tokens: the match that is
complete first, and of those that end at the same character the longest.
"""

from __future__ import annotations

from collections.abc import Iterable


class _Scanner:
    """Knuth-Morris-Pratt search for one string.

    Borders are learnt only as deep as the text has matched, so that a stop string of many
    thousand characters costs nothing until it begins to come.
    """

    __slots__ = ("_borders", "matched", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.matched = 0
        """How much of the pattern's start the text ends with; less than all of it."""
        self._borders = [0, 0]

    def feed(self, text: str, *, armed: bool) -> int | None:
        """The place in `text` behind the first match, if armed; unarmed, matches pass by."""
        if not self.matched and self.pattern[0] not in text:
            return None
        for end, char in enumerate(text, 1):
            self.matched = self._step(self.matched, char)
            if self.matched == len(self._borders):
                self._learn()
            if self.matched == len(self.pattern):
                self.matched = self._borders[self.matched]
                if armed:
                    return end
        return None

    def _step(self, matched: int, char: str) -> int:
        pattern, borders = self.pattern, self._borders
        while matched and pattern[matched] != char:
            matched = borders[matched]
        return matched + 1 if pattern[matched] == char else 0

    def _learn(self) -> None:
        length = len(self._borders)
        self._borders.append(self._step(self._borders[-1], self.pattern[length - 1]))


class StopMatcher:
    """Lets the text of one choice through up to its first stop string.

    Empty stop strings never match. With `include`, the matched string stays in the text.
    """

    __slots__ = ("_held", "_include", "_scanners", "matched")

    def __init__(self, stops: Iterable[str], *, include: bool = False) -> None:
        self._scanners = [_Scanner(stop) for stop in stops if stop]
        self._include = include
        self._held = ""
        self.matched: str | None = None
        """The stop string that was found; nothing may be fed after it."""

    def feed(self, text: str, *, armed: bool = True) -> str:
        """What may be shown after this text.

        Held back is the longest end of all text that may grow into a stop string. A match that
        completes unarmed is ordinary text, but one that begins there and completes armed counts.
        """
        found = None
        for scanner in self._scanners:
            end = scanner.feed(text, armed=armed)
            if end is not None:
                rank = (end, -len(scanner.pattern), scanner.pattern)
                found = rank if found is None else min(found, rank)
        if found is not None:
            return self._cut(text, *found)
        return self._hold(text)

    def flush(self) -> str:
        """The text held back, once no more can come."""
        held, self._held = self._held, ""
        return held

    def _cut(self, text: str, end: int, negative_length: int, stop: str) -> str:
        self.matched = stop
        text = self.flush() + text[:end]
        return text if self._include else text[:negative_length]

    def _hold(self, text: str) -> str:
        text = self._held + text
        shown = len(text) - max((scanner.matched for scanner in self._scanners), default=0)
        self._held = text[shown:]
        return text[:shown]
