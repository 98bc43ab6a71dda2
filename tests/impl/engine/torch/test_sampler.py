from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isogloss.engine.api import Sampling
from isogloss.engine.torch.sampler import SamplerRow, sample, sampler_row, seeded
from isogloss.engine.torch.scores import score_rows

V = 40


def logits_of(seed: int, rows: int = 1, width: int = V) -> torch.Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)) * 3


def reference_weights(logits: list[float], row: SamplerRow, prompt: list[int], output: list[int]) -> list[float]:
    """One row, token by token, straight from the definitions. Probabilities of the vocabulary."""
    s = row.sampling
    x = list(logits)
    for token, bias in s.logit_bias.items():
        x[token] += bias
    for token in row.banned:
        x[token] = -math.inf
    for token in {*prompt, *output}:
        x[token] = x[token] / s.repetition_penalty if x[token] > 0 else x[token] * s.repetition_penalty
        count = output.count(token)
        x[token] -= s.frequency_penalty * count + s.presence_penalty * (count > 0)
    if s.greedy:
        best = max(range(len(x)), key=lambda token: x[token])
        return [float(token == best) for token in range(len(x))]
    x = [value / s.temperature for value in x]
    w = [math.exp(value - max(x)) for value in x]
    w = [value if value >= s.min_p * max(w) else 0.0 for value in w]
    order = sorted(range(len(w)), key=lambda token: -w[token])
    if s.top_k:
        for token in order[s.top_k :]:
            w[token] = 0.0
    total, reached = sum(w), 0.0
    for token in order:
        if reached >= s.top_p * total and reached > 0:
            w[token] = 0.0
        reached += w[token]
    return [value / sum(w) for value in w]


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_p=st.sampled_from([1.0, 0.9, 0.5, 0.05]),
    top_k=st.sampled_from([0, 1, 5, V, 1000]),
    min_p=st.sampled_from([0.0, 0.05, 0.7]),
    presence_penalty=st.sampled_from([0.0, 1.5, -2.0]),
    frequency_penalty=st.sampled_from([0.0, 0.7, -0.5]),
    repetition_penalty=st.sampled_from([1.0, 1.7, 0.6]),
    logit_bias=st.dictionaries(st.integers(0, V - 1), st.sampled_from([-100.0, 4.0, 1.0]), max_size=3),
    seed=st.integers(-5, 2**64 + 5),
)
rows_strategy = st.lists(
    st.tuples(
        samplings,
        st.lists(st.integers(0, V - 1), min_size=1, max_size=6),
        st.lists(st.integers(0, V - 1), max_size=6),
        st.lists(st.integers(0, V - 1), max_size=3, unique=True),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(rows_strategy, st.integers(0, 1000))
def test_every_row_draws_as_the_definitions_say(cases, seed):
    """The token is the one at which the reference's cumulative probability passes the drawn number."""
    logits = logits_of(seed, len(cases))
    rows, references = [], []
    for index, (sampling, prompt, output, banned) in enumerate(cases):
        row = sampler_row(sampling, prompt, index, None)
        row.banned = tuple(banned)
        for token in output:
            if row.history is not None:
                row.history.add(token)
        rows.append(row)
        references.append(reference_weights(logits[index].tolist(), row, prompt, output))
    numbers = [seeded(s.seed, index).random() for index, (s, *_) in enumerate(cases)]
    for pick, weights, number in zip(sample(logits, rows), references, numbers, strict=True):
        assert pick is not None
        before = sum(weights[: pick.token])
        assert weights[pick.token] > 0
        if weights[pick.token] < 1:
            assert before - 1e-5 <= number <= before + weights[pick.token] + 1e-5


def test_logits_are_left_as_they_were():
    logits = logits_of(1, 2)
    before = logits.clone()
    sample(logits, [sampler_row(Sampling(logit_bias={1: 5.0}, top_k=3, repetition_penalty=2.0), [1], 0, 2)] * 2)
    assert torch.equal(logits, before)


CONTROLS = {
    "nothing": Sampling(seed=5),
    "temperature": Sampling(temperature=0.6, seed=5),
    "a high temperature": Sampling(temperature=1.9, seed=5),
    "top_k": Sampling(top_k=5, seed=5),
    "top_p": Sampling(top_p=0.8, seed=5),
    "min_p": Sampling(min_p=0.2, seed=5),
    "logit_bias": Sampling(logit_bias={3: 2.5, 7: -100.0}, seed=5),
    "presence_penalty": Sampling(presence_penalty=1.5, seed=5),
    "frequency_penalty": Sampling(frequency_penalty=0.9, seed=5),
    "repetition_penalty": Sampling(repetition_penalty=1.7, seed=5),
    "everything": Sampling(
        temperature=1.3,
        top_p=0.9,
        top_k=12,
        min_p=0.02,
        presence_penalty=0.3,
        frequency_penalty=0.2,
        repetition_penalty=1.2,
        logit_bias={3: 1.0},
        seed=5,
    ),
}


@pytest.mark.parametrize("sampling", CONTROLS.values(), ids=CONTROLS)
def test_frequencies_follow_the_distribution(sampling):
    """Chi-square over 20000 draws of each control, with fixed seeds, after a prompt and some output."""
    prompt, output = [0, 4], [2, 2, 9]
    row = sampler_row(sampling, prompt, 0, None)
    for token in output if row.history is not None else ():
        row.history.add(token)
    logits = logits_of(3)
    expected = np.array(reference_weights(logits[0].tolist(), row, prompt, output))
    draws = 20_000
    counts = np.zeros(V)
    for _ in range(draws // 500):
        for pick in sample(logits.expand(500, V), [row] * 500):
            counts[pick.token] += 1
    assert counts[expected == 0].sum() == 0
    # Cells that expect fewer than five are counted together, as the test wants it.
    small = (expected > 0) & (expected * draws < 5)
    cells = [(counts[i], draws * expected[i]) for i in np.flatnonzero((expected > 0) & ~small)]
    if small.any():
        cells.append((counts[small].sum(), draws * expected[small].sum()))
    chi_square = sum((seen - wanted) ** 2 / wanted for seen, wanted in cells if wanted > 0)
    freedom = max(1, len(cells) - 1)
    # Wilson and Hilferty: about one in a million lies above.
    assert chi_square < freedom * (1 - 2 / (9 * freedom) + 4.75 * math.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize("width", [255, 256, 257, 1000, 5000])
def test_the_ends_of_the_distribution_can_be_drawn_and_what_is_zero_cannot(width):
    """Uniform numbers at both ends of [0, 1) and weights in few places, across segment borders."""
    logits = torch.full((1, width), -1e9)
    places = sorted({3, 255 % width, 256 % width, width - 2})
    logits[0, places] = 0.0
    for number in (0.0, 0.25, 0.5, 0.75, 1 - 2**-53):
        row = SamplerRow(Sampling(), random=_Fixed(number))
        (pick,) = sample(logits, [row])
        assert pick.token in places
    assert sample(logits, [SamplerRow(Sampling(), random=_Fixed(0.0))])[0].token == places[0]
    assert sample(logits, [SamplerRow(Sampling(), random=_Fixed(1 - 2**-53))])[0].token == places[-1]


class _Fixed:
    def __init__(self, number: float) -> None:
        self._number = number

    def random(self) -> float:
        return self._number


def test_a_wide_nucleus_is_found_beyond_the_first_candidates():
    logits = torch.zeros(1, 6000)
    logits[0, ::2] += torch.linspace(0, 0.01, 3000)
    row = sampler_row(Sampling(top_p=0.25, seed=1), [0], 0, None)
    tokens = {sample(logits, [row])[0].token for _ in range(200)}
    # The upper half of the even tokens carries the mass that was asked for.
    assert all(token % 2 == 0 and token >= 2900 for token in tokens)
    assert len(tokens) > 150


@pytest.mark.parametrize("width", [90, 5000])
def test_a_share_just_below_one_keeps_all_that_counts(width):
    for seed in range(20):
        row = sampler_row(Sampling(top_p=1 - 2**-53, temperature=3.0, seed=seed), [0], 0, None)
        open_row = sampler_row(Sampling(temperature=3.0, seed=seed), [0], 0, None)
        logits = logits_of(seed, width=width)
        assert sample(logits, [row]) == sample(logits, [open_row])


def test_a_seed_gives_the_same_tokens_alone_and_in_company():
    logits = logits_of(9, 8, 3000)
    sampling = Sampling(temperature=0.9, top_p=0.8, seed=11)
    others = [Sampling(top_k=5), Sampling(temperature=0), Sampling(min_p=0.1), Sampling(top_p=0.3, seed=2)] * 2

    def draws(company: bool) -> list[int]:
        row = sampler_row(sampling, [1], 3, None)
        tokens = []
        for step in range(8):
            if company:
                rows = [sampler_row(s, [1], 0, 1) for s in others]
                rows[step] = row
                picks = sample(logits, rows)
                tokens.append(picks[step].token)
            else:
                tokens.append(sample(logits[step : step + 1], [row])[0].token)
        return tokens

    assert draws(company=False) == draws(company=True)


def test_choices_of_one_seed_differ_and_unseeded_ones_too():
    def draws(seed: int | None, choice: int) -> float:
        return seeded(seed, choice).random()

    assert draws(7, 0) == draws(7, 0)
    assert len({draws(7, 0), draws(7, 1), draws(8, 0), draws(-7, 0), draws(None, 0), draws(None, 0)}) == 6


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=0), Sampling(seed=1), Sampling(top_p=0.5, min_p=0.1, seed=3)]
)
def test_a_row_that_is_not_finite_fails_alone(bad, sampling):
    logits = logits_of(2, 3, 700)
    rows = [sampler_row(replace(sampling), [0], index, 1) for index in range(3)]
    expected = [pick.token for pick in sample(logits, rows)]
    logits[1, 650] = bad
    rows = [sampler_row(replace(sampling), [0], index, 1) for index in range(3)]
    picks = sample(logits, rows)
    assert picks[1] is None
    assert [picks[0].token, picks[2].token] == [expected[0], expected[2]]


def test_a_row_without_any_token_left_fails():
    row = SamplerRow(Sampling(temperature=0), banned=tuple(range(V)))
    assert sample(logits_of(1), [row]) == [None]


def test_scores_are_of_the_raw_distribution():
    logits = logits_of(4, 3)
    row = sampler_row(Sampling(temperature=0, logit_bias={7: 100.0}), [0], 0, 3)
    (pick, *_) = sample(logits, [row, row, row])
    logprobs = torch.log_softmax(logits[0].double(), -1)
    assert pick.token == 7
    assert pick.score.logprob == pytest.approx(logprobs[7].item(), abs=1e-5)
    assert pick.score.rank == 1 + int((logprobs > logprobs[7]).sum())
    best = logprobs.topk(3)
    assert [token for token, _ in pick.score.top] == best.indices.tolist()
    assert [value for _, value in pick.score.top] == pytest.approx(best.values.tolist(), abs=1e-5)


def test_scores_differ_in_how_many_alternatives_they_have():
    scores = score_rows(logits_of(5, 200), [1] * 200, [0, 2] * 100)
    assert [len(score.top) for score in scores] == [0, 2] * 100
    assert score_rows(logits_of(5), [1], [0])[0].top == ()
    assert len(score_rows(logits_of(5), [1], [V + 5])[0].top) == V


@pytest.mark.parametrize(
    ("penalty", "temperature"), [(1e-37, 1e-3), (1e-300, 1.0), (5e-46, 0.7), (1e-35, 0.0), (3e38, 1e-5)]
)
def test_extreme_penalties_harm_nobody(penalty, temperature):
    logits = torch.randn(2, 1000, generator=torch.Generator().manual_seed(0)) * 8
    extreme = Sampling(temperature=temperature, repetition_penalty=penalty, seed=1)
    rows = [sampler_row(extreme, [1, 2, 3], 0, None), sampler_row(Sampling(seed=1), [1], 0, None)]
    alone = sample(logits[1:].clone(), [sampler_row(Sampling(seed=1), [1], 0, None)])
    assert sample(logits, rows)[0] is not None
    rows[1] = sampler_row(Sampling(seed=1), [1], 0, None)
    assert sample(logits, rows)[1] == alone[0]
