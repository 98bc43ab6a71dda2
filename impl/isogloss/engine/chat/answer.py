"""Thought, text and calls of one answer."""

from __future__ import annotations

import json
from dataclasses import replace

from isogloss.engine.chat.calls import CallArguments, CallStarted, Content, Piece, Reasoning, joined
from isogloss.engine.chat.reasoning import ReasoningFormat
from isogloss.engine.chat.source import Markers, Read, Source
from isogloss.engine.chat.tools.base import ToolParser

_LINE_ENDS = "\r\n"


class AnswerParser:
    """Takes an answer apart as its text arrives: first the thought, then text and calls.

    Line ends around the thought are dropped. A thought that is never closed is all there is, line ends behind it
    included: a stop text may have ended it. Marks of thoughts that come later are ordinary text. Calls in a thought are
    drafts, but for whole ones at the end of one that is never closed: some models forget to.
    """

    def __init__(self, reasoning: ReasoningFormat | None, tools: ToolParser | None, *, inside: bool = False) -> None:
        self._tools = tools
        self._thought = None if reasoning is None else _Thought(reasoning, inside)
        self._thoughts: list[str] = []

    @property
    def thinking(self) -> bool:
        """Whether the text so far ends inside the thought."""
        return self._thought is not None and self._thought.open

    def push(self, text: str) -> list[Piece]:
        """What is certain after this text."""
        return self._parted(text, last=False)

    def end(self) -> list[Piece]:
        """What is left at the end of the answer."""
        pieces = self._parted("", last=True)
        if self._tools is None:
            return pieces
        rest = _calls_at_end(self._tools, "".join(self._thoughts)) if self.thinking else self._tools.end()
        return joined([*pieces, *rest])

    def _parted(self, text: str, *, last: bool) -> list[Piece]:
        pieces: list[Piece] = []
        if self._thought is not None:
            thought, text = self._thought.read(text, last=last)
            pieces.append(Reasoning(thought))
            self._thoughts.append(thought)
        pieces += [Content(text)] if self._tools is None else self._tools.push(text)
        return joined(pieces)


def _calls_at_end(tools: ToolParser, text: str) -> list[Piece]:
    """The calls with which a text ends, if all of them are whole."""
    calls: list[CallStarted | CallArguments] = []
    for piece in joined([*tools.push(text), *tools.end()]):
        if isinstance(piece, CallStarted | CallArguments):
            calls.append(piece)
        else:
            calls.clear()
    if not all(_is_json(piece.text) for piece in calls if isinstance(piece, CallArguments)):
        return []
    return [replace(piece, index=piece.index - calls[0].index) for piece in calls]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class _Thought:
    """Parts a text into the thought at its start and the rest."""

    def __init__(self, form: ReasoningFormat, inside: bool) -> None:
        self._form = form
        self._source = Source()
        self._thought: list[str] = []
        self._rest: list[str] = []
        self._line_ends: list[str] = []
        """Line ends that are part of the thought if it goes on."""
        self.open = inside
        self._reading = self._answer()
        next(self._reading, None)

    def read(self, text: str, *, last: bool) -> tuple[str, str]:
        """What this adds to the thought, and to the rest."""
        self._source.add(text)
        if last:
            self._source.close()
        next(self._reading, None)
        thought, rest = "".join(self._thought), "".join(self._rest)
        self._thought.clear()
        self._rest.clear()
        return thought, rest

    def _answer(self) -> Read[None]:
        before: list[str] = []
        yield from self._source.blanks(before.append)
        begins = yield from self._source.literal(self._form.start)
        if not begins and not self.open:
            self._rest += before
        else:
            self.open = True
            if not begins:
                self._show("".join(before).lstrip(_LINE_ENDS))
            yield from self._think()
        while (yield from self._source.peek()):
            self._rest.append(self._source.take_rest())

    def _think(self) -> Read[None]:
        yield from self._source.skip(_LINE_ENDS)
        if not (yield from self._source.until(Markers(self._form.end), self._show)):
            self._thought += self._line_ends
            return
        yield from self._source.literal(self._form.end)
        self.open = False
        yield from self._source.skip(_LINE_ENDS)

    def _show(self, text: str) -> None:
        solid = text.rstrip(_LINE_ENDS)
        if solid:
            self._thought += [*self._line_ends, solid]
            self._line_ends.clear()
        self._line_ends.append(text[len(solid) :])
