from __future__ import annotations

import math

import numpy as np
import pytest
from isogloss.engine.api import Sampling
from isogloss.engine.scripted.model import tiny_model
from isogloss.engine.scripted.sampling import Sampler
from isogloss.engine.scripted.vocabulary import END, FIRST_WORD, VOCAB_SIZE

MODEL = tiny_model()
STATE = MODEL.state([1, 2, 3])
ROW = MODEL.row(STATE)
RANKED = np.argsort(-ROW).tolist()


def draws(count=200, forbidden=(), prompt=(), row=ROW, **sampling) -> list[int]:
    sampler = Sampler(Sampling(**{"seed": 1, **sampling}), 0, prompt, VOCAB_SIZE)
    return [sampler.choose(row, forbidden) for _ in range(count)]


def test_the_state_depends_on_every_token():
    states = {MODEL.state(tokens) for tokens in ([1, 2, 3], [2, 1, 3], [4, 2, 3], [2, 3], [1, 2, 3, 3])}
    assert len(states) == 5
    assert MODEL.state([3], MODEL.state([1, 2])) == STATE


def test_scores_are_a_distribution():
    score = MODEL.score(STATE, RANKED[2], VOCAB_SIZE)
    assert score.rank == 3
    assert score.top[2] == (RANKED[2], score.logprob)
    assert math.fsum(math.exp(logprob) for _, logprob in score.top) == pytest.approx(1)
    assert score.top == tuple(sorted(score.top, key=lambda pair: -pair[1]))
    assert MODEL.score(STATE, RANKED[2], 0).top == ()


@pytest.mark.parametrize("token", [RANKED[0], RANKED[3], VOCAB_SIZE - 1])
def test_forced_tokens_lead_a_distribution(token):
    score = MODEL.forced_score(STATE, token, VOCAB_SIZE)
    assert score.rank == 1
    assert score.top[0] == (token, score.logprob)
    assert len({i for i, _ in score.top}) == VOCAB_SIZE
    assert math.fsum(math.exp(logprob) for _, logprob in score.top) == pytest.approx(1)
    assert len(MODEL.forced_score(STATE, token, 3).top) == 3


def test_prompt_scores_are_those_of_the_rows_before():
    first, second, third = MODEL.prompt_scores([5, 6, 7], 2)
    assert first is None
    assert second == MODEL.score(MODEL.state([5]), 6, 2)
    assert third == MODEL.score(MODEL.state([5, 6]), 7, 2)


def test_greedy_takes_the_favourite():
    assert draws(3, temperature=0) == [RANKED[0]] * 3 == [MODEL.favourite(STATE)] * 3


def test_frequencies_follow_the_distribution():
    taken = draws(4000)
    for token in RANKED[:3]:
        share = math.exp(MODEL.score(STATE, token, 0).logprob)
        assert taken.count(token) / 4000 == pytest.approx(share, abs=0.03)


def test_a_low_temperature_sharpens():
    assert draws(100, temperature=0.01) == [RANKED[0]] * 100
    assert len(set(draws(200, temperature=2.0))) > len(set(draws(200, temperature=0.5)))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_top_k(k):
    assert set(draws(400, temperature=2.0, top_k=k)) == set(RANKED[:k])


def test_top_p_keeps_the_fewest_that_reach_it():
    shares = np.exp([MODEL.score(STATE, token, 0).logprob for token in RANKED])
    kept = int((shares.cumsum() < 0.3).sum()) + 1
    assert set(draws(1000, top_p=0.3)) == set(RANKED[:kept])
    assert set(draws(50, top_p=1e-9)) == {RANKED[0]}


def test_min_p():
    least = ROW[RANKED[0]] + math.log(0.5)
    assert set(draws(500, min_p=0.5)) == {token for token in RANKED if ROW[token] >= least}


@pytest.mark.parametrize("token", [END, FIRST_WORD, 0, VOCAB_SIZE - 1])
@pytest.mark.parametrize("temperature", [0, 1])
def test_bias_forces_a_token(token, temperature):
    assert set(draws(50, temperature=temperature, logit_bias={token: 100})) == {token}


def test_bias_bans_a_token():
    taken = draws(500, logit_bias=dict.fromkeys(RANKED[:5], -100))
    assert not set(RANKED[:5]) & set(taken)


def test_forbidden_tokens_never_come():
    assert draws(1, forbidden=RANKED[:1], temperature=0) == [RANKED[1]]
    assert RANKED[0] not in draws(500, forbidden=RANKED[:1], logit_bias={RANKED[0]: 100})


@pytest.mark.parametrize(
    "penalty", [{"presence_penalty": 2.0}, {"frequency_penalty": 2.0}, {"repetition_penalty": 9.0}]
)
def test_penalties_push_back_what_came(penalty):
    sampler = Sampler(Sampling(temperature=0, **penalty), 0, (), VOCAB_SIZE)
    first = sampler.choose(ROW, ())
    for _ in range(5):
        sampler.took(first)
    assert sampler.choose(ROW, ()) != first == RANKED[0]


def test_only_the_repetition_penalty_counts_the_prompt():
    prompt = RANKED[:1]
    assert draws(1, temperature=0, prompt=prompt, repetition_penalty=9.0) != [RANKED[0]]
    assert draws(1, temperature=0, prompt=prompt, presence_penalty=2.0) == [RANKED[0]]


def test_the_frequency_penalty_grows_with_the_count():
    gap = ROW[RANKED[0]] - ROW[RANKED[1]]
    sampler = Sampler(Sampling(temperature=0, frequency_penalty=gap * 0.6), 0, (), VOCAB_SIZE)
    sampler.took(RANKED[0])
    assert sampler.choose(ROW, ()) == RANKED[0]
    sampler.took(RANKED[0])
    assert sampler.choose(ROW, ()) != RANKED[0]


def test_seeds():
    assert draws(20) == draws(20)
    assert draws(20, seed=0) != draws(20, seed=1)
    assert draws(20, seed=None) != draws(20, seed=None)
