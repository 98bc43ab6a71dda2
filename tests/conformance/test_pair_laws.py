"""Laws between a stream and the same call without one hold for equal answers and find each kind of difference."""

from __future__ import annotations

from typing import Any

import pytest
from isogloss_conformance.streams import pair_laws


def choice(index: int, text: str, finish: str | None = None, **members: Any) -> dict[str, Any]:
    return {"index": index, "text": text, "finish_reason": finish, **members}


def answer(*choices: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"choices": list(choices), **members}


def streamed(*choices: dict[str, Any]) -> list[dict[str, Any]]:
    return [answer(one) for one in choices]


FOUR = answer(choice(0, "ab"), choice(1, "c"), choice(2, "d"), choice(3, "e"))


@pytest.mark.parametrize(
    ("indexes", "wrong"),
    [
        ((0, 0, 1, 2, 3), None),
        ((1, 1, 0, 2, 3), None),  # nobody says which choice of a prompt is the first
        ((0, 0, 1, 3, 2), None),
        ((2, 2, 1, 0, 3), "choices 0 to 1"),  # but whose prompt it answers
        ((0, 1, 1, 2, 3), "choices 0 to 1"),
        ((0, 0, 1, 0, 1), "the indexes are [0, 1]"),
        ((0, 0, 1, 2, 4), "not 0 to 3"),
    ],
)
def test_choices(indexes: tuple[int, ...], wrong: str | None) -> None:
    chunks = streamed(*(choice(index, text) for index, text in zip(indexes, "abcde", strict=True)))
    found = pair_laws.same_choices(2, 2)(chunks, FOUR)
    assert found is None if wrong is None else wrong in str(found)


@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        (choice(0, "", "length", stop_reason=None), None),
        (choice(0, "", "stop", stop_reason=None), "finish_reason"),
        (choice(0, "", "length", stop_reason="x"), "stop_reason"),
        (choice(0, "x", "length", stop_reason=None), "joined"),
        (choice(0, "", "length", stop_reason=None, token_ids=[2]), "token_ids"),
    ],
)
def test_answers(last: dict[str, Any], wrong: str | None) -> None:
    whole = answer(choice(0, "ab", "length", stop_reason=None, token_ids=[1]))
    found = pair_laws.same_answer(streamed(choice(0, "ab", token_ids=[1]), last), whole)
    assert found is None if wrong is None else wrong in str(found)


def logprobs(token: str, offset: int, value: float | None, **top: float) -> dict[str, Any]:
    lists = {"tokens": [token], "text_offset": [offset], "token_logprobs": [value], "top_logprobs": [top or None]}
    return choice(0, token, logprobs=lists)


@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        (logprobs("b", 1, -5.0, b=-5.0, c=-6.0), None),
        (logprobs("b", 1, -5.004, c=-6.0, b=-5.0), None),
        (logprobs("b", 1, -5.0, b=-5.0, d=-6.0), None),  # a draw for the last place
        (logprobs("b", 1, -5.1, b=-5.0, c=-6.0), "token 1"),
        (logprobs("b", 1, None, b=-5.0, c=-6.0), "token 1"),
        (logprobs("b", 1, -5.0, b=-5.0, c=-6.1), "token 1"),
        (logprobs("b", 1, -5.0, b=-5.0), "token 1"),
        (logprobs("b", 1, -5.0), "token 1"),
        (logprobs("b", 2, -5.0, b=-5.0, c=-6.0), "offsets"),
        (logprobs("c", 1, -5.0, b=-5.0, c=-6.0), "joined"),
    ],
)
def test_logprobs(last: dict[str, Any], wrong: str | None) -> None:
    lists = {"tokens": ["a", "b"], "text_offset": [0, 1], "token_logprobs": [None, -5.0]}
    whole = answer(choice(0, "ab", logprobs={**lists, "top_logprobs": [None, {"b": -5.0, "c": -6.0}]}))
    found = pair_laws.same_logprobs(streamed(logprobs("a", 0, None), last), whole)
    assert found is None if wrong is None else wrong in str(found)


def chat(token: str, value: float, *top: float) -> dict[str, Any]:
    item = {"token": token, "logprob": value, "top_logprobs": [{"token": "x", "logprob": other} for other in top]}
    return {"index": 0, "delta": {"content": token}, "logprobs": {"content": [item]}}


def test_logprobs_of_chats() -> None:
    whole = answer(chat("a", -1.0, -1.0, -2.0))
    assert pair_laws.same_logprobs([answer(chat("a", -1.0, -1.0, -2.0))], whole) is None
    assert "token 0" in str(pair_laws.same_logprobs([answer(chat("a", -1.1, -1.0, -2.0))], whole))
    assert "token 0" in str(pair_laws.same_logprobs([answer(chat("a", -1.0, -1.0))], whole))


def usage(prompt: int, completion: int, total: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


ENDS = answer(choice(0, "a", "stop"))


@pytest.mark.parametrize(
    ("chunks", "wrong"),
    [
        ([answer(choice(0, "a")), ENDS | {"usage": usage(3, 2, 5)}], None),
        ([answer(choice(0, "a")), ENDS], "that ends a choice"),
        ([answer(choice(0, "a"), usage=usage(3, 1, 4)), ENDS | {"usage": usage(3, 2, 5)}], "does not end"),
        ([ENDS | {"usage": usage(2, 2, 4)}], "prompt_tokens"),
        ([ENDS | {"usage": usage(3, 1, 4)}], "completion_tokens"),
        ([ENDS | {"usage": usage(3, 2, 6)}], "total_tokens"),
        (
            [
                answer(choice(0, "", "stop"), usage=usage(3, 1, 4)),
                answer(choice(1, "", "stop"), usage=usage(3, 1, 4)),
            ],
            None,
        ),
    ],
)
def test_usage_at_the_end(chunks: list[dict[str, Any]], wrong: str | None) -> None:
    found = pair_laws.usage_at_end(chunks, {"usage": usage(3, 2, 5)})
    assert found is None if wrong is None else wrong in str(found)
