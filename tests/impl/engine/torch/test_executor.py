from __future__ import annotations

import pytest
import torch
from isogloss.engine.torch.executor import Span, UnsupportedModelError
from isogloss.engine.torch.transformers_executor import PreparedModel

TABLE = [3, 9, 5, 7, 2, 8]


def prompt(seed: int, length: int) -> list[int]:
    return torch.randint(2, 300, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def full_logits(model, tokens):
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens])).logits[0]


def test_chunks_and_decode_rows_equal_one_plain_pass(zoo, family):
    tokens = prompt(1, 21)
    executor = zoo.executor(family, blocks=16)
    expected = full_logits(zoo.load(family), tokens)
    parts = [
        executor.forward([Span(tokens[a:b], a, TABLE, wanted=b - a)])
        for a, b in ((0, 6), (6, 15), (15, 16), (16, 17), (17, 21))
    ]
    torch.testing.assert_close(torch.cat(parts), expected, atol=2e-3, rtol=2e-3)


def test_rows_of_one_step_do_not_see_each_other(zoo, family):
    executor = zoo.executor(family, blocks=32)
    model = zoo.load(family)
    first, second, third = prompt(1, 8), prompt(2, 13), prompt(3, 5)
    executor.forward([Span(first[:7], 0, [1, 2], 0), Span(second[:4], 0, [3, 4, 5, 6], 0)])
    logits = executor.forward(
        [
            Span(first[7:], 7, [1, 2], 1),
            Span(second[4:], 4, [3, 4, 5, 6], 2),
            Span(third, 0, [7, 8], 1),
        ]
    )
    expected = torch.stack(
        [
            full_logits(model, first)[-1],
            *full_logits(model, second)[-2:],
            full_logits(model, third)[-1],
        ]
    )
    torch.testing.assert_close(logits, expected, atol=2e-3, rtol=2e-3)


def test_a_copied_block_holds_the_same_context(zoo):
    executor = zoo.executor("llama", blocks=16)
    tokens = prompt(4, 9)
    executor.forward([Span(tokens[:6], 0, [1, 2], 0)])
    executor.copy_block(2, 6)
    # The original is overwritten by another continuation; the copy must not notice.
    executor.forward([Span([50, 51], 6, [1, 2], 0)])
    logits = executor.forward([Span(tokens[6:], 6, [1, 6, 7], 1)])
    torch.testing.assert_close(logits[0], full_logits(zoo.load("llama"), tokens)[-1], atol=2e-3, rtol=2e-3)


def test_no_wanted_rows_give_no_logits(zoo, family):
    executor = zoo.executor(family, blocks=16)
    assert executor.forward([Span([5, 6, 7], 0, TABLE, 0)]).shape == (0, executor.vocab_size)


def test_models_that_would_be_computed_wrong_are_refused(refused):
    with pytest.raises(UnsupportedModelError):
        PreparedModel(refused, 256).executor(16, 4)


def test_a_window_that_covers_the_context_is_no_obstacle(zoo):
    model = zoo.load("mistral")
    model.config.sliding_window = 64
    tokens = prompt(5, 20)
    expected = full_logits(model, tokens)
    executor = PreparedModel(model, 64).executor(16, 4)
    torch.testing.assert_close(executor.forward([Span(tokens, 0, TABLE, 20)]), expected, atol=2e-3, rtol=2e-3)


def test_the_check_compares_logits(zoo, monkeypatch):
    """An attention that is wrong only when it reads the cache is found before serving."""
    monkeypatch.setattr(
        "isogloss.engine.torch.attention.Pages.gather",
        lambda self, store: store[: len(self.blocks)].reshape(self.sequences, -1, *store.shape[2:]).transpose(1, 2) * 0,
    )
    with pytest.raises(UnsupportedModelError, match="logits differ"):
        zoo.executor("llama")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_types_pass_the_check(zoo, family, dtype):
    executor = PreparedModel(zoo.load(family).to(dtype), 256).executor(16, 4)
    assert executor.forward([Span(prompt(1, 5), 0, TABLE, 1)]).dtype == torch.float32


def test_cleared_blocks_are_zero_in_all_layers(zoo):
    executor = zoo.executor("llama", blocks=8)
    executor.forward([Span(prompt(1, 8), 0, [1, 2], 0)])
    executor.clear_blocks([1, 2])
    assert all(not store.any() for store in (*executor._kv.keys, *executor._kv.values))
