from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss.engine.api import EngineRefused
from isogloss.engine.scripted.vocabulary import (
    BEGIN,
    END,
    FIRST_FREE,
    VOCAB_SIZE,
    ByteTokenizer,
    assign_ids,
)

TOKENIZER = ByteTokenizer()


@given(st.text(alphabet=st.one_of(st.sampled_from(" the.\n<|end|>"), st.characters(exclude_categories=["Cs"]))))
def test_any_text_comes_back(text):
    ids = TOKENIZER.encode(text, add_special_tokens=False)
    assert TOKENIZER.decode(ids) == text
    decoder = TOKENIZER.decoder([])
    assert "".join([*map(decoder.push, ids), decoder.flush()]) == text
    assert all(0 <= token < FIRST_FREE and token not in (BEGIN, END) for token in ids)


@given(st.lists(st.integers(0, VOCAB_SIZE - 1)))
def test_pieces_of_any_tokens_equal_the_whole(ids):
    for skip in (True, False):
        decoder = TOKENIZER.decoder([], skip_special_tokens=skip)
        pieces = [*map(decoder.push, ids), decoder.flush()]
        assert "".join(pieces) == TOKENIZER.decode(ids, skip_special_tokens=skip)


def test_words_are_one_token():
    assert len(TOKENIZER.encode(" the old house")) == 3


def test_a_prompt_is_never_empty():
    assert TOKENIZER.encode("") == [BEGIN]
    assert TOKENIZER.encode("", add_special_tokens=False) == []


def test_special_tokens():
    assert TOKENIZER.eos_token_ids == {END}
    assert TOKENIZER.token_text(END) == "<|end|>"
    assert TOKENIZER.decode([END]) == ""
    assert END not in TOKENIZER.encode("<|end|>")


def test_lone_surrogates_do_no_harm():
    assert TOKENIZER.decode(TOKENIZER.encode("half \ud83d")) == "half \ufffd"


def test_script_tokens_get_ids_of_their_own():
    tokens = assign_ids([b" the", b"a", b"xyz", b"\xf0\x9f", b"xyz"])
    ids, extra = tokens.ids, tokens.extra
    assert ids[0] == TOKENIZER.encode(" the")[0]
    assert ids[1] == ord("a")
    assert ids[2] == ids[4]
    assert set(extra.values()) == {b"xyz", b"\xf0\x9f"}
    assert all(FIRST_FREE <= token < VOCAB_SIZE for token in extra)
    tokenizer = ByteTokenizer(extra)
    assert tokenizer.token_text(ids[2]) == "xyz"
    assert TOKENIZER.token_text(ids[2]) == ""


def test_a_script_with_too_many_tokens_is_refused():
    room = VOCAB_SIZE - FIRST_FREE
    assert len(assign_ids([b"x%d" % i for i in range(room)]).extra) == room
    with pytest.raises(EngineRefused):
        assign_ids([b"x%d" % i for i in range(room + 1)])
