"""The prompt before the completion, with log probabilities."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from isogloss.dialects.echo import token_texts
from isogloss.engine.scripted.vocabulary import ByteTokenizer


@given(st.text(min_size=1))
def test_texts_of_a_prompts_tokens_join_to_it(text):
    tokenizer = ByteTokenizer()
    shown = tokenizer.decode(tokenizer.encode(text))
    assert "".join(token_texts(tokenizer.encode(text), shown, tokenizer)) == shown


@given(st.lists(st.integers(0, 400), min_size=1))
@example([195, 182, 195])  # a whole character and the half of one
def test_texts_of_any_token_ids_join_to_what_is_shown(tokens):
    tokenizer = ByteTokenizer()
    shown = tokenizer.decode(tokens, skip_special_tokens=False)
    assert "".join(token_texts(tokens, shown, tokenizer)) == shown


def test_a_special_token_before_the_text_adds_nothing():
    assert token_texts([256, 72, 105], "Hi", ByteTokenizer()) == ["", "H", "i"]


def test_a_tokenizer_that_changes_the_text_keeps_its_own_parts():
    assert token_texts([72, 105], "HI", ByteTokenizer()) == ["H", "i"]


@pytest.mark.parametrize("prompt", ["Wörter", [256, 72, 195, 182]])
async def test_echo_with_logprobs(caller, prompt):
    body = await caller.ask(prompt=prompt, echo=True, logprobs=1, max_tokens=2)
    (choice,) = body["choices"]
    lists = choice["logprobs"]
    assert "".join(lists["tokens"]) == choice["text"]
    assert lists["token_logprobs"][0] is lists["top_logprobs"][0] is None
    assert all(value == -1.0 for value in lists["token_logprobs"][1:])
    assert len(lists["tokens"]) == body["usage"]["total_tokens"]
    place = 0
    for offset, name in zip(lists["text_offset"], lists["tokens"], strict=True):
        assert offset == place
        place += len(name)


async def test_echo_with_logprobs_of_several_prompts_and_choices(caller):
    body = await caller.ask(prompt=["ab", "c"], n=2, echo=True, logprobs=0)
    assert [choice["logprobs"]["tokens"] for choice in body["choices"]] == [
        ["a", "b", "o", "k"],
        ["a", "b", "o", "k"],
        ["c", "o", "k"],
        ["c", "o", "k"],
    ]


async def test_echo_without_logprobs(caller):
    (choice,) = (await caller.ask(echo=True))["choices"]
    assert choice["text"] == "Hiok"
    assert choice["logprobs"] is None


async def test_alternatives_of_echo_and_prompt_logprobs_are_counted_apart(caller):
    (choice,) = (await caller.ask(echo=True, logprobs=0, prompt_logprobs=1))["choices"]
    assert choice["logprobs"]["top_logprobs"][1] == {"i": -1.0}
    assert sorted(choice["prompt_logprobs"][1]) == ["105", "64"]


async def test_prompt_logprobs_alone(caller):
    body = await caller.ask(prompt=["Hi", "Oh"], prompt_logprobs=0)
    first, second = (choice["prompt_logprobs"] for choice in body["choices"])
    assert first == [None, {"105": {"logprob": -1.0, "rank": 2, "decoded_token": "i"}}]
    assert list(second[1]) == ["104"]
    assert body["choices"][0]["logprobs"] is None


async def test_prompt_logprobs_leave_the_logprobs_alone(caller):
    (choice,) = (await caller.ask(prompt_logprobs=1, logprobs=1))["choices"]
    assert choice["logprobs"]["tokens"] == ["o", "k"]
    assert choice["logprobs"]["text_offset"] == [0, 1]
    assert len(choice["prompt_logprobs"]) == 2


async def test_echo_as_token_ids(caller):
    (choice,) = (await caller.ask(echo=True, logprobs=0, return_tokens_as_token_ids=True))["choices"]
    assert choice["logprobs"]["tokens"] == ["token_id:72", "token_id:105", "token_id:111", "token_id:107"]
    assert choice["logprobs"]["text_offset"] == [0, 1, 2, 3]


async def test_long_prompts_are_taken_apart_elsewhere(caller, engine):
    engine.card = engine.card.__class__("fake", 4096, 2048, 2, 8, 7)
    (choice,) = (await caller.ask(prompt="é" * 300, echo=True, logprobs=0))["choices"]
    assert "".join(choice["logprobs"]["tokens"]) == choice["text"] == "é" * 300 + "ok"
