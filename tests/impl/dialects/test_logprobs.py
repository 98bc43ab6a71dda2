"""Log probabilities: names that join to the text, offsets, alternatives, figures of the prompt."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss.dialects.completions import Choice
from isogloss.dialects.logprobs import LOWEST, Form, of_prompt, prompt_logprobs
from isogloss.engine.api import Delta, Finish, TokenLogprob, TokenScore
from isogloss.engine.scripted.vocabulary import ByteTokenizer
from isogloss.engine.stops import StopMatcher


def score(token_id, alone, added=None, logprob=-1.0, top=()):
    return TokenScore(TokenLogprob(token_id, alone, logprob, 1), tuple(top), added)


def lists_of(fragments):
    parts = [fragment.logprobs for fragment in fragments]
    return {name: [item for part in parts for item in part[name]] for name in parts[0]}


def fragments_of(deltas, form, *, echo="", at_once=False):
    choice = Choice(0, form)
    if echo:
        choice.open(echo, of_prompt([0], [echo], [None], form))
    found = []
    for delta in deltas:
        choice.add(delta)
        if not at_once or delta.finish:
            found.append(choice.take())
    return [fragment for fragment in found if fragment is not None]


def deltas_of(pieces, stops=(), *, include=False, end=False):
    """What an engine makes of tokens with these bytes: text held for stop strings, whole characters only."""
    decoder = ByteTokenizer(dict(enumerate(pieces, 600))).decoder(())
    matcher = StopMatcher(stops, include=include)
    deltas = []
    for place, piece in enumerate(pieces):
        last = place == len(pieces) - 1
        added = decoder.push(600 + place) + (decoder.flush() if last else "")
        shown = matcher.feed(added) + (matcher.flush() if last and not end else "")
        finish = Finish("stop", matcher.matched) if matcher.matched else Finish("length") if last else None
        alone = piece.decode(errors="replace")
        deltas.append(Delta(0, shown, (600 + place,), (score(600 + place, alone, added),), finish))
        if finish:
            break
    return deltas


PIECES = st.lists(
    st.sampled_from("a b ab ba é 🦊 ∞x".split()).map(str.encode) | st.binary(min_size=1, max_size=3), min_size=1
)
STOPS = st.lists(st.sampled_from(["ab", "ba b", "aa", "bé", "🦊a"]), max_size=2)


@given(PIECES, STOPS, st.booleans(), st.booleans(), st.sampled_from(["", "x", "Wört "]))
def test_names_join_to_the_text_and_offsets_go_on(pieces, stops, include, at_once, echo):
    deltas = deltas_of(pieces, stops, include=include)
    fragments = fragments_of(deltas, Form(0), echo=echo, at_once=at_once)
    lists = lists_of(fragments)
    text = "".join(fragment.text for fragment in fragments)
    assert "".join(lists["tokens"]) == text
    assert len({len(items) for items in lists.values()}) == 1
    assert len(lists["tokens"]) == len(deltas) + bool(echo)
    for place, name in zip(lists["text_offset"], lists["tokens"], strict=True):
        assert text[place : place + len(name)] == name
    assert text.startswith(echo)


@given(PIECES, STOPS)
def test_a_stream_says_the_same_as_a_whole_answer(pieces, stops):
    deltas = deltas_of(pieces, stops)
    assert lists_of(fragments_of(deltas, Form(1))) == lists_of(fragments_of(deltas, Form(1), at_once=True))


@given(PIECES, STOPS)
def test_no_name_runs_ahead_of_the_text_of_a_stream(pieces, stops):
    text = names = ""
    for fragment in fragments_of(deltas_of(pieces, stops), Form(0)):
        text += fragment.text
        names += "".join(fragment.logprobs["tokens"])
        assert text.startswith(names)


def test_a_stop_string_across_tokens():
    deltas = deltas_of([b"A tall ap", b"ple", b" tree", b" stands"], ["ple tree"])
    (fragment,) = fragments_of(deltas, Form(0), at_once=True)
    assert fragment.text == "A tall ap"
    assert fragment.logprobs["tokens"] == ["A tall ap", "", ""]


def test_a_stop_string_inside_a_token():
    (fragment,) = fragments_of(deltas_of([b"one two STOPthree"], ["STOP"]), Form(0))
    assert fragment.logprobs["tokens"] == ["one two "]
    assert fragment.logprobs["top_logprobs"] == [{"one two ": -1.0}]


def test_parts_of_a_character():
    lists = lists_of(fragments_of(deltas_of([b" \xf0\x9f", b"\xa6\x8a", b"!"]), Form(0)))
    assert lists["tokens"] == [" ", "🦊", "!"]
    assert lists["text_offset"] == [0, 1, 2]


def test_the_end_token_is_listed_without_a_name():
    deltas = [
        Delta(0, "a", (1,), (score(1, "a"),)),
        Delta(0, "", (2,), (score(2, "<|end|>", "", logprob=-0.5),), Finish("stop")),
    ]
    lists = lists_of(fragments_of(deltas, Form(0)))
    assert lists["tokens"] == ["a", ""]
    assert lists["token_logprobs"] == [-1.0, -0.5]
    assert lists["text_offset"] == [0, 1]


def test_an_engine_that_only_knows_tokens_alone():
    (fragment,) = fragments_of([Delta(0, "ab", (1,), (score(1, "ab"),), Finish("length"))], Form(0))
    assert fragment.logprobs["tokens"] == ["ab"]


TOP = (TokenLogprob(8, "x", -0.5, 1), TokenLogprob(1, "a", -1.0, 2), TokenLogprob(9, "y", -2.0, 3))


@pytest.mark.parametrize(
    ("alternatives", "wanted"),
    [
        (0, {"a": -1.0}),
        (1, {"x": -0.5, "a": -1.0}),
        (2, {"x": -0.5, "a": -1.0}),
        (3, {"x": -0.5, "a": -1.0, "y": -2.0}),
    ],
)
def test_alternatives_and_the_chosen_token(alternatives, wanted):
    assert Form(alternatives).top(score(1, "a", top=TOP), "a") == wanted


def test_chosen_token_below_the_alternatives():
    top = Form(1).top(score(5, "z", logprob=-7.0, top=TOP), "z")
    assert top == {"x": -0.5, "z": -7.0}


def test_tokens_with_one_text_are_told_apart_and_the_chosen_one_keeps_its_name():
    twins = (TokenLogprob(8, "a", -0.5, 1), TokenLogprob(1, "a", -1.0, 2))
    assert Form(2).top(score(1, "a", top=twins), "a") == {"token_id:8": -0.5, "a": -1.0}
    others = (TokenLogprob(8, "", -0.5, 1), TokenLogprob(9, "", -0.6, 2))
    assert Form(2).top(score(1, "a", top=others), "a") == {"": -0.5, "token_id:9": -0.6, "a": -1.0}
    assert Form(2, as_ids=True).top(score(1, "a", top=twins), "a") == {"token_id:8": -0.5, "token_id:1": -1.0}


def test_chosen_token_has_one_name_in_list_and_alternatives():
    chosen = TokenLogprob(1, "\ufffd", -0.25, 1)
    item = TokenScore(chosen, (chosen, TokenLogprob(2, "b", -3.0, 2)), "é")
    assert Form(2).top(item, "é") == {"é": -0.25, "b": -3.0}


def test_names_as_ids_keep_the_offsets_of_the_text():
    lists = lists_of(fragments_of(deltas_of([b"ab", b"c"]), Form(0, as_ids=True)))
    assert lists["tokens"] == ["token_id:600", "token_id:601"]
    assert lists["text_offset"] == [0, 2]
    assert lists["top_logprobs"] == [{"token_id:600": -1.0}, {"token_id:601": -1.0}]


@pytest.mark.parametrize("value", [-math.inf, math.nan, -1e9])
def test_no_value_that_json_cannot_say(value):
    item = score(1, "a", logprob=value, top=[TokenLogprob(2, "b", value, 1)])
    (fragment,) = fragments_of([Delta(0, "a", (1,), (item,), Finish("length"))], Form(1))
    assert fragment.logprobs["token_logprobs"] == [LOWEST]
    assert fragment.logprobs["top_logprobs"] == [{"b": LOWEST, "a": LOWEST}]
    assert prompt_logprobs([item], 1)[0]["1"]["logprob"] == LOWEST


def test_figures_of_the_prompt():
    chosen = TokenLogprob(1, "a", -3.0, 7)
    found = prompt_logprobs([None, TokenScore(chosen, TOP)], 1)
    assert found == [
        None,
        {
            "1": {"logprob": -3.0, "rank": 7, "decoded_token": "a"},
            "8": {"logprob": -0.5, "rank": 1, "decoded_token": "x"},
        },
    ]
    assert list(prompt_logprobs([TokenScore(chosen, TOP)], 0)[0]) == ["1"]
