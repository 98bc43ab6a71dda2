"""The core against transformers' own generate(), through every path of the scheduler."""

from __future__ import annotations

import random

import pytest
import torch
from isogloss.engine.api import Sampling, Stopping
from isogloss.engine.tokens import Admitted, PromptScored, Sampled
from isogloss.engine.torch.scheduler import Scheduler


def prompts(count: int, *, longest: int = 40, seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(2, 300) for _ in range(rng.randrange(1, longest))] for _ in range(count)]


@pytest.fixture
def preemptions(monkeypatch):
    """Counts preemptions."""
    seen = []
    original = Scheduler._preempt

    def counted(self, choice, plan):
        seen.append(choice)
        original(self, choice, plan)

    monkeypatch.setattr(Scheduler, "_preempt", counted)
    return seen


def test_greedy_alone_equals_generate(zoo, family, drive, ask):
    driver = drive(zoo.executor(family), budget=7)
    for prompt in prompts(3):
        job = driver.submit(ask(prompt, 20))
        driver.run()
        assert driver.tokens[job][0] == zoo.generate(family, prompt, 20)


def test_a_ragged_batch_that_joins_and_leaves_equals_generate(zoo, family, drive, ask):
    """16 requests of different lengths arrive at different steps; chunks are small."""
    driver = drive(zoo.executor(family, blocks=400), budget=11)
    lengths = [5 + 3 * (i % 7) for i in range(16)]
    jobs = []
    for i, prompt in enumerate(prompts(16, seed=1)):
        jobs.append(driver.submit(ask(prompt, lengths[i])))
        for _ in range(i % 3):
            driver.step()
    driver.run()
    for job, count in zip(jobs, lengths, strict=True):
        assert driver.tokens[job][0] == zoo.generate(family, job.request.prompt, count)
    assert driver.core.pool.usage == 0


def test_preemption_changes_no_token(zoo, drive, ask, preemptions):
    driver = drive(zoo.executor("llama", blocks=26), budget=16)
    jobs = [driver.submit(ask(prompt, 24)) for prompt in prompts(10, longest=30, seed=2)]
    driver.run()
    assert len(preemptions) > 3
    for job in jobs:
        assert driver.tokens[job][0] == zoo.generate("llama", job.request.prompt, 24)
        assert sum(isinstance(event, Admitted) for event in driver.events[job]) == 1
    assert driver.core.pool.usage == 0


def test_preemption_changes_no_sampled_token(zoo, drive, ask, preemptions):
    sampling = Sampling(temperature=1.0, seed=4, repetition_penalty=1.2, presence_penalty=0.5)
    sequences = prompts(6, longest=30, seed=3)
    roomy, tight = (drive(zoo.executor("llama", blocks=blocks), budget=16) for blocks in (200, 24))
    results = []
    for driver in (roomy, tight):
        jobs = [driver.submit(ask(prompt, 24, sampling, n=2)) for prompt in sequences]
        driver.run()
        results.append([driver.tokens[job] for job in jobs])
    assert preemptions
    assert results[0] == results[1]


def test_the_least_urgent_is_preempted(zoo, drive, ask, preemptions):
    driver = drive(zoo.executor("llama", blocks=16))
    late, urgent = (driver.submit(ask(p, 40, priority=-i)) for i, p in enumerate(prompts(2, longest=8, seed=4)))
    driver.run()
    assert {choice.job for choice in preemptions} == {late}
    for job in (late, urgent):
        assert driver.tokens[job][0] == zoo.generate("llama", job.request.prompt, 40)


def test_a_known_prefix_is_not_computed_again(zoo, drive, ask):
    driver = drive(zoo.executor("llama"))
    (prompt,) = prompts(1, longest=60, seed=8)
    prompt = (prompt * 4)[:30]
    first = driver.submit(ask(prompt, 9))
    driver.run()
    again = driver.submit(ask(prompt, 9))
    turn = driver.submit(ask(prompt + driver.tokens[first][0] + [7], 9))
    driver.run()
    assert driver.cached(first) == 0
    # The last token is always computed, and the last of the output was never.
    assert driver.cached(again) == 28
    assert driver.cached(turn) == 36
    for job in (first, again, turn):
        assert driver.tokens[job][0] == zoo.generate("llama", job.request.prompt, 9)


def test_a_prompt_of_whole_blocks_keeps_one_block_to_compute(zoo, drive, ask):
    driver = drive(zoo.executor("llama"))
    prompt = list(range(10, 26))
    jobs = []
    for _ in range(2):
        jobs.append(driver.submit(ask(prompt, 5)))
        driver.run()
    assert driver.cached(jobs[1]) == 12
    assert driver.tokens[jobs[0]] == driver.tokens[jobs[1]]


def test_choices_share_the_prompt(zoo, drive, ask):
    """Five choices cost one prefill, and each is what its seed gives."""
    driver = drive(zoo.executor("llama"))
    prompt = list(range(10, 40))
    job = driver.submit(ask(prompt, 12, Sampling(seed=3), n=5))
    driver.step()
    # 30 positions are 8 blocks of 4 for all five choices together.
    assert round(driver.core.pool.usage * driver.core.pool.capacity) == 8
    driver.step()
    # The partly filled block was copied for four of them.
    assert round(driver.core.pool.usage * driver.core.pool.capacity) == 12
    driver.run()
    solo = drive(zoo.executor("llama"))
    same_seed = solo.submit(ask(prompt, 12, Sampling(seed=3), n=1))
    solo.run()
    assert driver.tokens[job][0] == solo.tokens[same_seed][0]
    assert len({tuple(driver.tokens[job][index]) for index in range(5)}) == 5
    for event_index, event in enumerate(e for e in driver.events[job] if isinstance(e, Sampled)):
        assert event.choice == event_index % 5
    assert driver.core.pool.usage == 0


def test_greedy_choices_are_all_what_generate_gives(zoo, family, drive, ask):
    driver = drive(zoo.executor(family), budget=5)
    (prompt,) = prompts(1, longest=40, seed=11)
    job = driver.submit(ask(prompt, 10, n=3))
    driver.run()
    assert [driver.tokens[job][i] for i in range(3)] == [zoo.generate(family, prompt, 10)] * 3


def test_more_choices_than_seats_still_run(zoo, drive, ask):
    driver = drive(zoo.executor("llama"), seqs=2)
    job, other = driver.submit(ask([5, 6, 7], 4, n=4)), driver.submit(ask([8, 9], 4))
    driver.run()
    assert [len(driver.tokens[job][i]) for i in range(4)] == [4] * 4
    assert len(driver.tokens[other][0]) == 4


def test_a_seed_gives_the_same_tokens_alone_and_in_a_busy_batch(zoo, drive, ask):
    sampling = Sampling(temperature=0.8, top_p=0.95, seed=17)
    prompt = list(range(30, 51))
    alone = drive(zoo.executor("llama"))
    expected = alone.submit(ask(prompt, 25, sampling, n=2))
    alone.run()
    busy = drive(zoo.executor("llama", blocks=300), budget=13)
    others = [busy.submit(ask(p, 30, Sampling(temperature=1.0))) for p in prompts(6, seed=6)]
    busy.step()
    job = busy.submit(ask(prompt, 25, sampling, n=2))
    others += [busy.submit(ask(p, 30, Sampling(top_k=4))) for p in prompts(6, seed=7)]
    busy.run()
    assert busy.tokens[job] == alone.tokens[expected]


def test_urgent_requests_start_first_then_arrival_counts(zoo, drive, ask):
    driver = drive(zoo.executor("llama"), seqs=1)
    jobs = [driver.submit(ask([5, 6], 2, priority=priority)) for priority in (1, 0, 1, -3)]
    order = []
    while driver.core.busy:
        driver.step()
        order += [job for job in jobs if job in driver.finished and job not in order]
    assert order == [jobs[3], jobs[1], jobs[0], jobs[2]]


# -- ends --


@pytest.mark.parametrize("where", [1, 4])
def test_ends_are_told_apart(zoo, drive, ask, where):
    prompt = [40, 41, 42]
    expected = zoo.generate("llama", prompt, 12)
    # The first position of its token, or it would end earlier.
    where = next(i for i in range(where, 12) if expected.index(expected[i]) == i)
    token = expected[where]
    driver = drive(zoo.executor("llama"))

    def end_of(stopping, eos=frozenset()):
        job = driver.submit(ask(prompt, 12, stopping=stopping), frozenset(eos))
        driver.run()
        last = driver.events[job][-1]
        return driver.tokens[job][0], last.end.reason, last.end.stop_token

    assert end_of(Stopping(12), {token}) == (expected[: where + 1], "stop", None)
    assert end_of(Stopping(12, stop_token_ids=frozenset({token}))) == (expected[: where + 1], "stop", token)
    both = Stopping(12, stop_token_ids=frozenset({token}))
    assert end_of(both, {token}) == (expected[: where + 1], "stop", None)
    assert end_of(Stopping(12, ignore_eos=True), {token}) == (expected, "length", None)
    assert end_of(Stopping(where + 1), {token})[1] == "stop"
    assert end_of(Stopping(where), {token}) == (expected[:where], "length", None)


def test_min_tokens_hold_back_every_end(zoo, drive, ask):
    prompt = [40, 41, 42]
    expected = zoo.generate("llama", prompt, 3)
    driver = drive(zoo.executor("llama"))
    stopping = Stopping(20, min_tokens=6, stop_token_ids=frozenset({expected[0]}))
    job = driver.submit(ask(prompt, 20, stopping=stopping), frozenset({expected[1], expected[2]}))
    driver.run()
    tokens = driver.tokens[job][0]
    assert not set(tokens[:6]) & set(expected)
    assert len(tokens) >= 6


def test_stop_tokens_outside_the_vocabulary_never_come(zoo, drive, ask):
    driver = drive(zoo.executor("llama"))
    stopping = Stopping(5, min_tokens=2, stop_token_ids=frozenset({-1, 320, 10**9}))
    job = driver.submit(ask([40, 41, 42], 5, stopping=stopping))
    driver.run()
    assert driver.tokens[job][0] == zoo.generate("llama", [40, 41, 42], 5)


# -- scores --


def reference_logprobs(model, tokens):
    with torch.inference_mode():
        return torch.log_softmax(model(input_ids=torch.tensor([tokens])).logits[0].double(), -1)


def check_score(score, logprobs, token, alternatives):
    assert score.logprob == pytest.approx(logprobs[token].item(), abs=1e-3)
    assert score.rank == 1 + int((logprobs > logprobs[token] + 1e-6).sum())
    best = logprobs.topk(alternatives) if alternatives else None
    assert [t for t, _ in score.top] == ([] if best is None else best.indices.tolist())
    if best is not None:
        assert [v for _, v in score.top] == pytest.approx(best.values.tolist(), abs=1e-3)


@pytest.mark.parametrize("blocks", [60, 14])
def test_prompt_and_output_scores_are_those_of_the_model(zoo, drive, ask, blocks):
    """Also where the prompt is prefilled in chunks, and where others push it out meanwhile."""
    driver = drive(zoo.executor("llama", blocks=blocks), budget=6)
    prompt = [*range(50, 73)]
    rival = driver.submit(ask([9, 8, 7], 30, priority=-1))
    for _ in range(3):
        driver.step()
    job = driver.submit(ask(prompt, 6, logprobs=2, prompt_logprobs=3))
    driver.run()
    assert rival in driver.finished
    tokens = prompt + driver.tokens[job][0]
    logprobs = reference_logprobs(zoo.load("llama"), tokens)
    scores = driver.prompt_scores(job)
    assert scores[0] is None
    for position in range(1, len(prompt)):
        check_score(scores[position], logprobs[position - 1], tokens[position], 3)
    sampled = [event for event in driver.events[job] if isinstance(event, Sampled)]
    for position, event in enumerate(sampled, len(prompt)):
        check_score(event.score, logprobs[position - 1], tokens[position], 2)
    kinds = [type(event) for event in driver.events[job]]
    assert kinds.index(PromptScored) < kinds.index(Sampled)


def test_prompt_scores_need_no_cache_and_feed_it(zoo, drive, ask):
    driver = drive(zoo.executor("llama"))
    prompt = [*range(50, 73)]
    jobs = []
    for more in ({}, {"prompt_logprobs": 0}, {}):
        jobs.append(driver.submit(ask(prompt, 2, **more)))
        driver.run()
    assert [driver.cached(job) for job in jobs] == [0, 0, 20]
    assert len(driver.prompt_scores(jobs[1])) == len(prompt)


def test_a_prompt_of_one_token_has_one_empty_score(zoo, drive, ask):
    driver = drive(zoo.executor("llama"))
    job = driver.submit(ask([5], 2, prompt_logprobs=1))
    driver.run()
    assert driver.prompt_scores(job) == (None,)
