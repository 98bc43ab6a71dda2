"""Each law of a stream holds for a good one and finds its own kind of bad one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from isogloss_conformance.events import Recording
from isogloss_conformance.streams import laws

DONE = "[DONE]"


def chunk(text: str, index: int = 0, finish: str | None = None, **members: Any) -> dict[str, Any]:
    choice = {"index": index, "text": text, "finish_reason": finish}
    return {"id": "c", "object": "o", "created": 1, "model": "m", "choices": [choice], **members}


USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
GOOD = [chunk("a"), chunk("b", finish="stop")]
WHOLE = {**chunk("ab", finish="stop"), "usage": USAGE}
LAST = chunk("", usage=USAGE) | {"choices": []}


def recorded(raw: bytes, content_type: str = "text/event-stream; charset=utf-8") -> Recording:
    pieces = tuple((0.1 * number, raw[start : start + 7]) for number, start in enumerate(range(0, len(raw), 7)))
    return Recording(200, {"content-type": content_type}, pieces)


def stream(*data: Any) -> Recording:
    texts = [item if isinstance(item, str) else json.dumps(item) for item in data]
    return recorded("".join(f"data: {text}\n\n" for text in texts).encode())


def test_events_are_read_whatever_the_line_ends() -> None:
    for end in ("\n", "\r\n", "\r"):
        found = recorded(f": hi{end}{end}data: 1{end}{end}data:2{end}{end}".encode())
        assert [event.data for event in found.events] == ["1", "2"]
        assert found.comments == 1
        assert found.framing() is None


def test_times_are_those_of_the_completing_piece() -> None:
    assert [round(event.at, 1) for event in recorded(b"data: 1\n\ndata: 22\n\n").events] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        (b"data: 1\n\ndata: 2\n", "without a blank line"),
        (b"data: 1\ndata: 2\n\n", "one blank line"),
        (b"hello\n\n", "no field"),
        (b"id: 1\n\n", "no data"),
        (b"data: \xff\n\n", "not UTF-8"),
    ],
)
def test_bad_frames(raw: bytes, wrong: str) -> None:
    assert wrong in str(recorded(raw).framing())


def test_content_type() -> None:
    assert "content type" in str(recorded(b"data: 1\n\n", "application/json").framing())


@pytest.mark.parametrize(
    ("data", "fine"),
    [
        (("{}", DONE), True),
        (("{}",), False),
        (("{}", DONE, DONE), False),
        ((DONE, "{}"), False),
    ],
)
def test_terminator(data: tuple[str, ...], fine: bool) -> None:
    assert (laws.terminated(stream(*data), DONE) is None) is fine


def test_a_dialect_without_terminator() -> None:
    assert laws.terminated(stream("{}"), None) is None
    assert laws.terminated(stream("{}", DONE), None) is not None


@pytest.mark.parametrize("name", laws.CONSTANT)
def test_constant(name: str) -> None:
    assert laws.constant(GOOD) is None
    assert name in str(laws.constant([GOOD[0], {**GOOD[1], name: "x"}]))


@pytest.mark.parametrize(
    ("chunks", "choices", "wrong"),
    [
        (GOOD, 1, None),
        ([*GOOD, chunk("x", 1, "stop")], 2, None),
        (GOOD, 2, "indexes"),
        ([chunk("a"), chunk("b")], 1, "without a finish reason"),
        ([chunk("a", finish="stop"), chunk("b", finish="stop")], 1, "2 finish reasons"),
        ([chunk("a", finish="stop"), chunk("b")], 1, "without a finish reason"),
    ],
)
def test_finish(chunks: list[dict[str, Any]], choices: int, wrong: str | None) -> None:
    found = laws.finished(chunks, choices)
    assert found is None if wrong is None else wrong in str(found)


def test_text() -> None:
    assert laws.equal_text(GOOD, WHOLE) is None
    assert laws.equal_text(GOOD[1:], WHOLE) is not None
    chat = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}}]}]
    assert laws.equal_text(chat, {"choices": [{"index": 0, "message": {"content": "a"}}]}) is None


def with_logprobs(tokens: list[str], offsets: list[int]) -> dict[str, Any]:
    made = chunk("")
    made["choices"][0]["logprobs"] = {"tokens": tokens, "text_offset": offsets}
    return made


def test_logprobs() -> None:
    whole = with_logprobs(["a", "b"], [0, 1])
    parts = [with_logprobs(["a"], [0]), with_logprobs(["b"], [1])]
    assert laws.equal_logprobs(parts, whole) is None
    assert "joined" in str(laws.equal_logprobs(parts[:1], whole))
    assert "fall" in str(laws.equal_logprobs([with_logprobs(["a"], [1]), with_logprobs(["b"], [0])], whole))
    assert "has no" in str(laws.equal_logprobs(parts, chunk("")))


def test_usage() -> None:
    assert laws.usage_unasked(GOOD) is None
    assert laws.usage_unasked([*GOOD, LAST]) is not None
    assert laws.usage_asked([*GOOD, LAST], WHOLE) is None
    assert laws.usage_asked(GOOD, WHOLE) is not None
    assert "choices" in str(laws.usage_asked([GOOD[0], {**GOOD[1], "usage": USAGE}], WHOLE))
    assert "0 chunks" not in str(laws.usage_asked([LAST, *GOOD, LAST], WHOLE))
    wrong = {**LAST, "usage": {**USAGE, "completion_tokens": 9}}
    assert "completion_tokens" in str(laws.usage_asked([*GOOD, wrong], WHOLE))


@pytest.mark.parametrize(
    ("made", "prompts", "wrong"),
    [
        ((1, 2, 2), (3, 3, 3), None),
        ((None, 2, 2), (3, 3, 3), "2 of 3"),
        ((2, 1, 2), (3, 3, 3), "do not rise"),
        ((2, 2, 2), (3, 3, 3), "do not rise"),
        ((1, 2, 2), (3, 3, 0), "change"),
    ],
)
def test_usage_so_far(made: tuple[int | None, ...], prompts: tuple[int, ...], wrong: str | None) -> None:
    told = zip(made, prompts, strict=True)
    usages = [
        None if completion is None else {"completion_tokens": completion, "prompt_tokens": prompt}
        for completion, prompt in told
    ]
    found = laws.usage_so_far([chunk("a", usage=usage) for usage in usages])
    assert found is None if wrong is None else wrong in str(found)


def test_usage_so_far_of_all_tokens_at_once() -> None:
    usage = {"completion_tokens": 3, "prompt_tokens": 1}
    assert laws.usage_so_far([chunk(piece, usage=usage) for piece in ("abc", "", "")]) is None


def test_characters() -> None:
    assert laws.whole_characters([chunk("a"), chunk("😀")], "a😀") is None
    assert "part" in str(laws.whole_characters([chunk("a\ufffd"), chunk("😀")], "a😀"))
    assert laws.whole_characters([chunk("a")], "a😀") is not None


def test_stop() -> None:
    assert laws.stopped(GOOD, "ab") is None
    assert laws.stopped(GOOD, "a") is not None


def test_errors() -> None:
    error = {"error": {"message": "x"}}
    assert laws.failed(stream(GOOD[0], error, DONE), DONE) is None
    assert laws.failed(stream(GOOD[0], {"object": "error"}), DONE) is None
    assert "0 error" in str(laws.failed(stream(*GOOD, DONE), DONE))
    assert "follow" in str(laws.failed(stream(error, GOOD[0], DONE), DONE))


def test_spread() -> None:
    slow, fast = stream(*GOOD), Recording(200, {}, ((0.1, b"data: 1\n\ndata: 2\n\n"),))
    assert laws.spread(slow, 0.5) is None
    assert laws.spread(fast, 0.5) is not None
    assert laws.spread(stream("1"), 0.0) is not None
