from __future__ import annotations

import json
import threading
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss.engine.tokenizer import HFTokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

CORPUS = [
    "The quick brown fox, isn't it? jumps over the lazy dog. Hello world!",
    "日本語の文字と漢字。 中文字符 naïve café résumé",
    "Smile 😀 fox 🦊 family 👩‍👩‍👧 flag 🇳🇴 cafe\u0301 a\u0308",
    "def f(x):\n    return x + 1\t# 12345",
] * 5
SPECIAL = ["<s>", "</s>"]
MODEL_VOCAB = 2000
FAMILIES = ["byte_level", "byte_fallback", "metaspace", "word_piece", "slow"]

TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from("abcehlotxyz ,.'\n😀🦊漢字é\u0301\u200d"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=30,
)


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet)
    )
    return tokenizer


def byte_fallback() -> Tokenizer:
    """As Llama 2: spaces are ▁, one is put before, unknown characters are bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    names = [*SPECIAL, "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        [text for text in CORPUS if text.isascii()],
        trainers.BpeTrainer(vocab_size=400, special_tokens=names),
    )
    plain = Tokenizer.from_str(tokenizer.to_str())
    return without_special(plain, names[3:])


def without_special(tokenizer: Tokenizer, names: list[str]) -> Tokenizer:
    """The tokenizer with these names as tokens of the model only, as byte tokens are."""
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] not in names]
    return Tokenizer.from_str(json.dumps(state))


def metaspace() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(vocab_size=200, special_tokens=[*SPECIAL, "<unk>"], unk_token="<unk>"),
    )
    return tokenizer


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=250, special_tokens=[*SPECIAL, "[UNK]"]))
    return tokenizer


@cache
def family(name: str) -> HFTokenizer:
    if name == "slow":
        return HFTokenizer(ByT5Tokenizer(), eos_token_ids=[1], vocab_size=MODEL_VOCAB)
    made = PreTrainedTokenizerFast(
        tokenizer_object=globals()[name](),
        eos_token="</s>",
        bos_token="<s>",
        clean_up_tokenization_spaces=name == "word_piece",
    )
    return HFTokenizer(made, eos_token_ids=[made.eos_token_id], vocab_size=MODEL_VOCAB)


def streamed(tokenizer: HFTokenizer, prompt: list[int], tokens: list[int], *, skip=True) -> list[str]:
    decoder = tokenizer.decoder(prompt, skip_special_tokens=skip)
    return [*map(decoder.push, tokens), decoder.flush()]


@pytest.mark.parametrize("name", FAMILIES)
@given(TEXTS, st.integers(0, 40))
def test_pieces_equal_the_whole(name, text, cut):
    tokenizer = family(name)
    ids = tokenizer.encode(text, add_special_tokens=False)
    prompt, tokens = ids[:cut], ids[cut:]
    before, whole = tokenizer.decode(prompt), tokenizer.decode(ids)
    pieces = streamed(tokenizer, prompt, tokens)
    if whole.startswith(before) and not before.endswith("\ufffd"):
        assert before + "".join(pieces) == whole
    if "\ufffd" not in whole:
        assert not any("\ufffd" in piece for piece in streamed(tokenizer, [], ids))


@given(st.lists(st.integers(0, 420), max_size=60))
def test_any_tokens_of_byte_level_bpe_equal_the_whole(ids):
    tokenizer = family("byte_level")
    assert "".join(streamed(tokenizer, [], ids)) == tokenizer.decode(ids)
    shown = streamed(tokenizer, [], ids, skip=False)
    assert "".join(shown) == tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("name", ["metaspace", "word_piece"])
@given(ids=st.lists(st.integers(0, 260), max_size=40), cut=st.integers(0, 40))
def test_any_tokens_of_other_families_equal_the_whole(name, ids, cut):
    tokenizer = family(name)
    before, whole = tokenizer.decode(ids[:cut]), tokenizer.decode(ids)
    assert before + "".join(streamed(tokenizer, ids[:cut], ids[cut:])) == whole


def byte_tokens(text: str) -> list[int]:
    """A text spelled in the tokens of byte fallback, whose ids begin at 3."""
    return [3 + byte for byte in text.encode()]


def test_a_long_run_of_fallback_bytes_streams_by_character():
    tokenizer = family("byte_fallback")
    text = "漢字🦊" * 10
    ids = byte_tokens(text)
    assert tokenizer.decode(ids) == text
    pieces = streamed(tokenizer, [], ids)
    assert [piece for piece in pieces if piece] == list(text)
    for cut in range(0, len(text), 7):
        start = len(byte_tokens(text[:cut]))
        assert "".join(streamed(tokenizer, ids[:start], ids[start:])) == text[cut:]


def test_broken_fallback_bytes_leave_their_neighbours_whole():
    tokenizer = family("byte_fallback")
    ids = [*byte_tokens("漢"), *byte_tokens("字")[:2], tokenizer.encode("a")[-1]]
    assert "".join(streamed(tokenizer, [], ids)) == "漢\ufffd\ufffda"


@pytest.mark.parametrize("count", [1, 7, 8, 9, 20, 50])
def test_a_character_after_broken_bytes_is_whole(count):
    tokenizer = family("byte_level")
    character = tokenizer.encode("\U0001f9ff")
    ids = [*character[:1] * count, *character]
    assert "".join(streamed(tokenizer, [], ids)) == "\ufffd" * count + "\U0001f9ff"


def test_endless_broken_bytes_come_out_and_stay_bounded():
    tokenizer = family("byte_level")
    byte = tokenizer.encode("\U0001f9ff")[0]
    decoder = tokenizer.decoder([])
    shown = "".join(decoder.push(byte) for _ in range(500))
    assert 400 < len(shown) <= 500
    assert len(decoder._ids) < 150


@pytest.mark.parametrize("name", ["byte_fallback", "metaspace"])
def test_the_prompt_gives_the_first_space(name):
    tokenizer = family(name)
    hello = tokenizer.encode("Hello", add_special_tokens=False)
    text, word = next(
        (text, token) for token in range(400) if (text := tokenizer.token_text(token)).startswith(" ") and len(text) > 2
    )
    assert "".join(streamed(tokenizer, [], [word])) == text[1:]
    assert "".join(streamed(tokenizer, hello, [word])) == text
    assert "".join(streamed(tokenizer, [*hello, *[0] * 20], [word])) == text


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_beyond_the_tokenizer_have_no_text(name):
    tokenizer = family(name)
    ids = tokenizer.encode("Hello fox", add_special_tokens=False)
    whole = tokenizer.decode(ids)
    gaps = [part for token in ids for part in (token, MODEL_VOCAB - 1)]
    assert tokenizer.decode(gaps) == whole
    assert "".join(streamed(tokenizer, [], gaps)) == whole
    assert tokenizer.token_text(MODEL_VOCAB - 1) == ""
    assert tokenizer.vocab_size == MODEL_VOCAB


@pytest.mark.parametrize("name", FAMILIES)
def test_token_texts_join_to_the_text(name):
    tokenizer = family(name)
    ids = tokenizer.encode("The lazy fox jumps", add_special_tokens=False)
    assert "".join(map(tokenizer.token_text, ids)).lstrip(" ") == tokenizer.decode(ids)


def test_special_tokens():
    tokenizer = family("byte_level")
    (eos,) = tokenizer.eos_token_ids
    assert tokenizer.token_text(eos) == "</s>"
    assert tokenizer.decode([eos]) == ""
    assert tokenizer.decode([eos], skip_special_tokens=False) == "</s>"
    assert streamed(tokenizer, [], [eos], skip=False) == ["</s>", ""]


def test_a_part_of_a_character_is_a_replacement_character():
    tokenizer = family("byte_level")
    first = tokenizer.encode("\U0001f9ff", add_special_tokens=False)[0]
    assert tokenizer.token_text(first) == "\ufffd"


def test_lone_surrogates_are_encoded_as_replacement_characters():
    tokenizer = family("byte_level")
    assert tokenizer.decode(tokenizer.encode("half \ud83d")) == "half \ufffd"


def test_truncation_and_padding_of_the_tokenizer_are_left_out():
    rust = byte_level()
    rust.enable_truncation(2)
    rust.enable_padding(length=50)
    made = PreTrainedTokenizerFast(tokenizer_object=rust)
    tokenizer = HFTokenizer(made, eos_token_ids=[1], vocab_size=MODEL_VOCAB)
    assert tokenizer.encode("Hello fox") == family("byte_level").encode("Hello fox")
    assert made.backend_tokenizer.truncation is not None


def test_threads_share_a_tokenizer():
    tokenizer = family("byte_level")
    text = CORPUS[0] * 50
    wanted = tokenizer.encode(text)
    results: list[bool] = []

    def work() -> None:
        for _ in range(20):
            results.append(tokenizer.encode(text) == wanted and tokenizer.decode(wanted) == text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80
