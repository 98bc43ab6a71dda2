"""A sequence gives out the parts of its answer as they come, and nothing twice."""

from __future__ import annotations

from isogloss.dialects.chat_sequence import ChatSequence
from isogloss.engine.api import Delta, Finish
from isogloss.engine.chat import CallArguments, CallStarted, Content, Piece, Reasoning


class Parser:
    """Says for each text what a test has laid down for it."""

    def __init__(self, *steps: tuple[list[Piece], bool], last: list[Piece] | None = None) -> None:
        self._steps = list(steps)
        self._last = last or []
        self.thinking = False

    def push(self, text: str) -> list[Piece]:
        pieces, self.thinking = self._steps.pop(0)
        return pieces

    def end(self) -> list[Piece]:
        return self._last


def grown(parser: Parser, *finishes: Finish | None, include_stop: bool = False) -> ChatSequence:
    sequence = ChatSequence(0, None, parser, include_stop=include_stop)  # type: ignore[arg-type]
    for finish in finishes:
        sequence.add(Delta(0, "x", (1,), finish=finish))
    return sequence


def test_parts_of_one_call_are_one_part():
    parser = Parser(
        ([Content("a"), CallStarted(0, "f"), CallArguments(0, "{"), CallArguments(0, "}"), CallStarted(1, "g")], False),
        ([CallArguments(1, "{}")], False),
    )
    sequence = grown(parser, None)
    piece = sequence.take()
    assert (piece.text, piece.reasoning, piece.finish) == ("a", "", None)
    assert [(part.index, part.name, part.arguments) for part in piece.calls] == [(0, "f", "{}"), (1, "g", "")]
    assert len({part.id for part in piece.calls}) == 2
    sequence.add(Delta(0, "x", (1,), finish=Finish("stop")))
    piece = sequence.take()
    assert [(part.index, part.id, part.name, part.arguments) for part in piece.calls] == [(1, None, None, "{}")]
    assert (piece.text, sequence.text, sequence.finish_reason) == ("", "a", "tool_calls")


def test_calls_of_a_cut_answer_are_not_its_reason():
    assert grown(Parser(([CallStarted(0, "f")], False)), Finish("length")).finish_reason == "length"
    assert grown(Parser(([Content("a")], False)), Finish("stop")).finish_reason == "stop"
    assert grown(Parser(([Content("a")], False)), None).finish_reason is None


def test_what_the_parser_held_back_comes_at_the_end():
    piece = grown(Parser(([], False), last=[Content("<to")]), Finish("stop")).take()
    assert piece.text == "<to"


def test_tokens_of_a_thought():
    parser = Parser(([], False), ([], True), ([Reasoning("a")], True), ([Content("b")], False), ([Content("c")], False))
    sequence = grown(parser, None, None, None, None, None)
    assert (sequence.tokens, sequence.reasoning_tokens) == (5, 4)


def test_tokens_of_a_thought_that_ends_in_the_step_that_began_it():
    sequence = grown(Parser(([Reasoning("a"), Content("b")], False), ([Content("c")], False)), None, None)
    assert (sequence.tokens, sequence.reasoning_tokens) == (2, 1)


def test_a_stop_text_belongs_to_the_thought_it_ends():
    for thinking, include, reasoning, text in (
        (True, False, "a STOP-b", ""),
        (True, True, "a-b", "c"),
        (False, False, "a-b", "c"),
    ):
        stop = ([Reasoning(" STOP"), Content("d")], False)
        parser = Parser(([Reasoning("a")], thinking), stop, last=[Reasoning("-b"), Content("c")])
        piece = grown(parser, Finish("stop", " STOP"), include_stop=include).take()
        assert (piece.reasoning, piece.text) == (reasoning, text)
    stopped = grown(Parser(([Reasoning("a")], True)), Finish("stop", 7))
    assert stopped.take().reasoning == "a", "a stop token's text is not known here"
