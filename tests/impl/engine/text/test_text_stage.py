from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss.engine.api import (
    Delta,
    EngineFailure,
    EngineOverloaded,
    Finish,
    GenerationRequest,
    PromptScores,
    Started,
    Stopping,
    Timing,
    TokenLogprob,
    TokenScore,
)
from isogloss.engine.scripted.vocabulary import END, VOCAB_SIZE, ByteTokenizer
from isogloss.engine.text import TextStage
from isogloss.engine.tokens import Admitted, PromptScored, RawScore, Sampled, TokenEnd

TIMING = Timing(queue=1.0)
EOS = TokenEnd("stop")
LENGTH = TokenEnd("length")


class Tape:
    """A token source and its one stream: what it plays, and what the stage did to it."""

    def __init__(self, steps: Sequence[list], error: Exception | None = None):
        self.steps = iter(steps)
        self.error = error
        self.ended: list[int] = []
        self.closed = 0

    def open(self, request):
        if isinstance(self.error, EngineOverloaded):
            raise self.error
        return self

    def __aiter__(self):
        return self

    async def __anext__(self):
        await asyncio.sleep(0)
        for step in self.steps:
            return step
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration

    def end(self, choice):
        self.ended.append(choice)

    def timing(self, choice):
        return TIMING

    def close(self):
        self.closed += 1


def vocabulary(*tokens: bytes) -> tuple[ByteTokenizer, list[int]]:
    ids = list(range(VOCAB_SIZE - len(tokens), VOCAB_SIZE))
    return ByteTokenizer(dict(zip(ids, tokens, strict=True))), ids


def request(n: int = 1, logprobs: int | None = None, skip: bool = True, **stopping):
    return GenerationRequest(
        "r",
        (104, 105),
        Stopping(**{"max_tokens": 100, **stopping}),
        n=n,
        logprobs=logprobs,
        skip_special_tokens=skip,
    )


async def play(tokens: Sequence[bytes], last=EOS, **options) -> tuple[list[Delta], Tape]:
    """Deltas of one choice over these tokens; the last of them ends it."""
    tokenizer, ids = vocabulary(*tokens)
    ends = [None] * (len(ids) - 1) + [last]
    tape = Tape([[Sampled(0, i, end=end)] for i, end in zip(ids, ends, strict=True)])
    stage = TextStage(tokenizer, tape)
    return [event async for event in stage.generate(request(**options))], tape


def text_of(deltas) -> str:
    return "".join(delta.text for delta in deltas)


async def test_whole_characters_only():
    deltas, _ = await play([b" \xf0\x9f", b"\xa6\x8a", b" ", b"\xe2\x88\x9e"], LENGTH)
    assert [delta.text for delta in deltas] == [" ", "🦊", " ", "∞"]


async def test_incomplete_bytes_come_out_at_the_end():
    deltas, _ = await play([b"a", b"\xe6\xbc"], LENGTH)
    assert [delta.text for delta in deltas] == ["a", "\ufffd"]


async def test_every_token_is_reported_at_once():
    deltas, _ = await play([b"A", b"P", b"Px"], LENGTH, stop=("APP!",))
    assert [(delta.text, len(delta.token_ids)) for delta in deltas] == [("", 1), ("", 1), ("APPx", 1)]


async def test_a_stop_string_over_tokens_is_never_shown():
    deltas, tape = await play([b"A tall ap", b"ple", b" tree", b" stands"], stop=("ple tree",))
    assert [delta.text for delta in deltas] == ["A tall a", "p", ""]
    assert deltas[-1].finish == Finish("stop", "ple tree", TIMING)
    assert tape.ended == [0]
    assert tape.closed == 1


async def test_a_stop_string_may_cut_characters_of_tokens():
    deltas, _ = await play([b"x\xf0\x9f", b"\xa6\x8ay", b"z"], stop=("🦊y",))
    assert text_of(deltas) == "x"


async def test_include_stop_keeps_the_match_and_drops_what_follows():
    deltas, _ = await play([b"one STOPthree", b"four"], stop=("STOP",), include_stop=True)
    assert [delta.text for delta in deltas] == ["one STOP"]


async def test_a_stop_string_beats_the_length_rule():
    deltas, _ = await play([b"a", b"b"], LENGTH, stop=("b",))
    assert deltas[-1].finish == Finish("stop", "b", TIMING)


async def test_a_stop_string_may_match_in_flushed_text():
    deltas, _ = await play([b"a", b"\xe6"], LENGTH, stop=("\ufffd",))
    assert text_of(deltas) == "a"
    assert deltas[-1].finish.stop == "\ufffd"


@pytest.mark.parametrize(
    ("last", "include", "text"),
    [
        (TokenEnd("stop"), True, "a"),
        (TokenEnd("stop"), False, "a"),
        (TokenEnd("stop", stop_token=7), False, "a"),
        (TokenEnd("stop", stop_token=7), True, "ab"),
        (TokenEnd("length"), False, "ab"),
    ],
)
async def test_text_of_the_last_token(last, include, text):
    deltas, _ = await play([b"a", b"b"], last, include_stop=include)
    assert text_of(deltas) == text
    assert deltas[-1].finish == Finish(last.reason, last.stop_token, TIMING)


@pytest.mark.parametrize(("skip", "text"), [(True, "ab"), (False, "a<|end|>b")])
async def test_an_ignored_end_token_is_an_ordinary_token(skip, text):
    tokenizer, (a, b) = vocabulary(b"a", b"b")
    tape = Tape([[Sampled(0, a)], [Sampled(0, END)], [Sampled(0, b, end=LENGTH)]])
    stage = TextStage(tokenizer, tape)
    deltas = [event async for event in stage.generate(request(skip=skip, ignore_eos=True))]
    assert text_of(deltas) == text


@pytest.mark.parametrize(
    ("min_tokens", "text"),
    [(0, ""), (1, ""), (2, "xyx"), (3, "xyxxyx"), (4, "xyxxyxxyxx")],
)
async def test_min_tokens_counts_the_token_that_completes_a_match(min_tokens, text):
    tokens = [b"xy", b"xxy", b"xxy", b"xxxy"]
    deltas, _ = await play(tokens, LENGTH, stop=("xy",), min_tokens=min_tokens)
    assert text_of(deltas) == text
    assert deltas[-1].finish.stop == "xy"


async def test_a_match_may_begin_before_min_tokens():
    deltas, _ = await play([b"ab", b"ab"], LENGTH, stop=("bab", "a"), min_tokens=2)
    assert text_of(deltas) == "ab"
    deltas, _ = await play([b"ab", b"ab"], LENGTH, stop=("bab",), min_tokens=2)
    assert text_of(deltas) == "a"


async def test_choices_end_apart_and_late_tokens_are_dropped():
    tokenizer, (a, b, stop) = vocabulary(b"a", b"b", b"!")
    tape = Tape(
        [
            [Admitted(cached_tokens=3)],
            [Sampled(0, a), Sampled(1, b)],
            [Sampled(0, stop), Sampled(1, a)],
            [Sampled(0, a), Sampled(1, b, end=EOS)],
            [Sampled(1, a)],
        ]
    )
    stage = TextStage(tokenizer, tape)
    started, *deltas = [event async for event in stage.generate(request(n=2, stop=("!",)))]
    assert started == Started(3)
    assert [(d.choice, d.text, d.finish and d.finish.stop) for d in deltas] == [
        (0, "a", None),
        (1, "b", None),
        (0, "", "!"),
        (1, "a", None),
        (1, "", None),
    ]
    assert tape.ended == [0]


async def test_scores_carry_the_texts_of_tokens():
    tokenizer, (a, fox) = vocabulary(b"a", b"\xf0\x9f")
    score = RawScore(-1.5, 4, ((fox, -0.1), (END, -0.2)))
    tape = Tape([[Admitted(), PromptScored((None, score))], [Sampled(0, a, score)], [Sampled(0, a, score, EOS)]])
    stage = TextStage(tokenizer, tape)
    _, prompt, *deltas = [event async for event in stage.generate(request(logprobs=2))]
    top = (TokenLogprob(fox, "\ufffd", -0.1, 1), TokenLogprob(END, "<|end|>", -0.2, 2))
    assert prompt == PromptScores((None, TokenScore(TokenLogprob(105, "i", -1.5, 4), top)))
    chosen = TokenLogprob(a, "a", -1.5, 4)
    assert [delta.scores for delta in deltas] == [
        (TokenScore(chosen, top, "a"),),
        (TokenScore(chosen, top, ""),),
    ]


async def test_scores_say_what_each_token_added():
    tokenizer, ids = vocabulary(b"xS", b"TO", b"\xf0\x9f", b"\xa6\x8aP", b"\xf0")
    ends = [None] * 4 + [LENGTH]
    score = RawScore(-1.0, 1)
    tape = Tape([[Sampled(0, i, score, end)] for i, end in zip(ids, ends, strict=True)])
    stage = TextStage(tokenizer, tape)
    deltas = [event async for event in stage.generate(request(logprobs=0, stop=("STOP",)))]
    added = [delta.scores[0].text for delta in deltas]
    assert added == ["xS", "TO", "", "🦊P", "\ufffd"]
    assert "".join(added) == text_of(deltas)


async def test_no_scores_unless_wanted():
    tokenizer, (a,) = vocabulary(b"a")
    tape = Tape([[Sampled(0, a, RawScore(-1.0, 1), EOS)]])
    (delta,) = [event async for event in TextStage(tokenizer, tape).generate(request())]
    assert delta.scores == ()


async def test_closing_the_generator_closes_the_stream():
    tokenizer, (a,) = vocabulary(b"a")
    tape = Tape([[Sampled(0, a)]] * 5)
    events = TextStage(tokenizer, tape).generate(request())
    await anext(events)
    assert not tape.closed
    await events.aclose()
    assert tape.closed


async def test_cancelling_the_reader_closes_the_stream():
    tokenizer, (a,) = vocabulary(b"a")
    tape = Tape([[Sampled(0, a)]] * 10**6)

    async def read():
        async for _ in TextStage(tokenizer, tape).generate(request()):
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tape.closed == 1


@pytest.mark.parametrize("error", [EngineOverloaded("full"), EngineFailure("broke")])
async def test_errors_of_the_source_pass_through(error):
    tokenizer, _ = vocabulary()
    with pytest.raises(type(error), match=str(error)):
        await anext(TextStage(tokenizer, Tape([], error)).generate(request()))


async def test_a_source_that_ends_early_is_a_failure():
    tokenizer, (a,) = vocabulary(b"a")
    events = TextStage(tokenizer, Tape([[Sampled(0, a)]])).generate(request())
    await anext(events)
    with pytest.raises(EngineFailure):
        await anext(events)


PIECES = st.lists(st.sampled_from([b"a", b"b", b"ab", b"\xf0\x9f", b"\xa6\x8a", b"\xe6", b""]), min_size=1, max_size=10)


@given(
    PIECES,
    st.lists(st.text(alphabet="ab🦊\ufffd", min_size=1, max_size=3), max_size=3),
    st.booleans(),
    st.integers(0, 10),
)
def test_streamed_text_equals_the_reference(tokens, stops, include, min_tokens):
    options = {"stop": tuple(stops), "include_stop": include, "min_tokens": min_tokens}
    deltas, _ = asyncio.run(play(tokens, LENGTH, **options))
    text, match = reference(tokens, stops, include, min_tokens)
    assert text_of(deltas) == text
    assert deltas[-1].finish.stop == match
    assert len([token for delta in deltas for token in delta.token_ids]) == len(deltas)


def reference(tokens, stops, include, min_tokens) -> tuple[str, str | None]:
    """Text and stop string, from the whole text: the match that counts and is complete first."""
    text = b"".join(tokens).decode(errors="replace")
    certain = [certain_length(b"".join(tokens[:made])) for made in range(1, len(tokens))]
    lengths = [0, *certain, len(text)]
    passed = lengths[max(0, min(min_tokens - 1, len(tokens)))]
    for end in range(passed + 1, len(text) + 1):
        hits = [stop for stop in stops if text[:end].endswith(stop)]
        if hits:
            stop = max(hits, key=len)
            return text[: end if include else end - len(stop)], stop
    return text, None


def certain_length(data: bytes) -> int:
    """Characters of the text that no further byte can change."""
    futures = [data, data + b"a", data + b"\xa6\x8a", data + b"\x8a", data + b"\xf0\x9f"]
    decoded = [future.decode(errors="replace") for future in futures]
    length = 0
    while all(len(text) > length for text in decoded) and len({t[length] for t in decoded}) == 1:
        length += 1
    return length
