"""Fill-in-the-middle prompts, token by token, for the spelling of each model family."""

from __future__ import annotations

import pytest
from isogloss.engine.infill import FORMATS
from isogloss.engine.tokenizer import HFTokenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = ["def add(a, b):\n    return a + b\n", "print('hello world')"]


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=280, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def spaced() -> Tokenizer:
    """As Llama 2: one space is put before each text; unknown characters are bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    names = ["<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=320, special_tokens=names))
    return tokenizer


def wrapped(tokenizer: Tokenizer, names=(), *, begins=False, vocab_size=1000) -> HFTokenizer:
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    if begins:
        ends = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    return HFTokenizer(fast, eos_token_ids=[1], vocab_size=vocab_size)


@pytest.fixture(params=FORMATS, ids=lambda form: form.start)
def form(request):
    return request.param


def test_the_order_of_tokens_in_each_spelling(form):
    start, hole, end = names = [form.start, form.hole, form.end]
    tokenizer = wrapped(byte_level(), reversed(names))
    ids = dict(zip(names, [282, 281, 280], strict=True))
    before, after = "def add(", "    return a"
    expected = [ids[start], *tokenizer.encode(before), ids[hole], *tokenizer.encode(after), ids[end]]
    assert [tokenizer.token_text(token) for token in (282, 281, 280)] == names
    assert tokenizer.infill.encode(before, after) == expected
    assert tokenizer.decode(expected, skip_special_tokens=False) == f"{start}{before}{hole}{after}{end}"


def test_empty_texts(form):
    tokenizer = wrapped(byte_level(), [form.start, form.hole, form.end])
    assert tokenizer.infill.encode("", "") == [280, 281, 282]
    assert tokenizer.infill.encode("", "a") == [280, 281, *tokenizer.encode("a"), 282]


def test_the_begin_token_stands_first_and_no_end_token_anywhere():
    form = FORMATS[0]
    tokenizer = wrapped(byte_level(), [form.start, form.hole, form.end], begins=True)
    assert tokenizer.encode("a")[0] == 0
    assert tokenizer.encode("a")[-1] == 1
    plain = tokenizer.infill.encode("def", "return", add_special_tokens=False)
    assert plain[0] == 280
    assert tokenizer.infill.encode("def", "return") == [0, *plain]
    assert 1 not in plain


def test_code_llamas_suffix_gets_no_space_of_its_own():
    form = FORMATS[-1]
    tokenizer = wrapped(spaced(), [form.start, form.hole, form.end, "▁<EOT>"])
    tokens = tokenizer.infill.encode("def", "return a")
    text = tokenizer.decode(tokens, skip_special_tokens=False)
    assert text.replace("▁", " ") == " <PRE> def <SUF>return a <MID>"
    assert tokenizer.infill.stop_ids == set(range(tokens[0], tokens[0] + 4))


def test_tokens_that_end_what_is_filled_in():
    names = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<file_sep>"]
    assert wrapped(byte_level(), names).infill.stop_ids == {280, 281, 282, 283, 284}
    assert wrapped(byte_level(), names[:3]).infill.stop_ids == {280, 281, 282}
    qwen = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]
    assert wrapped(byte_level(), qwen).infill.stop_ids == {280, 281, 282, 283, 284, 285}


@pytest.mark.parametrize(
    ("names", "vocab_size"),
    [
        ([], 1000),
        (["<fim_prefix>", "<fim_suffix>"], 1000),
        (["<fim_prefix>", "<|fim_suffix|>", "<fim-middle>"], 1000),
        # The model has no embedding for the last one.
        (["<fim_prefix>", "<fim_suffix>", "<fim_middle>"], 282),
    ],
)
def test_without_all_three_tokens_there_is_no_infill(names, vocab_size):
    assert wrapped(byte_level(), names, vocab_size=vocab_size).infill is None
