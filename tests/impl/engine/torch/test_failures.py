"""What goes wrong for one request must not reach another, and blocks always come home."""

from __future__ import annotations

import pytest
import torch
from isogloss.engine.api import EngineFailure, Sampling
from isogloss.engine.torch.scheduler import Scheduler
from isogloss.engine.torch.transformers_executor import PreparedModel

POISON = 5


@pytest.fixture
def poisoned(zoo):
    """A model for which one token of the vocabulary is not a number."""
    model = zoo.load("gpt_neox")
    executor = PreparedModel(model, 256).executor(40, 4)
    with torch.no_grad():
        model.get_input_embeddings().weight[POISON] = float("nan")
    return executor


def test_a_request_with_nan_logits_fails_alone(zoo, poisoned, drive, ask):
    driver = drive(poisoned, budget=8)
    prompt = [*range(20, 33)]
    good = driver.submit(ask(prompt, 20))
    driver.step()
    bad = driver.submit(ask([*range(30, 41), POISON, 9, 9, 9], 20, n=2))
    later = driver.submit(ask(prompt[:-1], 20))
    driver.run()
    assert isinstance(driver.failures[bad], EngineFailure)
    assert set(driver.failures) == {bad}
    for job in (good, later):
        assert driver.tokens[job][0] == zoo.generate("gpt_neox", job.request.prompt, 20)
    assert driver.core.pool.usage == 0


@pytest.mark.parametrize("aborted", [False, True])
def test_blocks_of_a_poisoned_request_are_safe_to_use_again(zoo, poisoned, drive, ask, aborted):
    driver = drive(poisoned, budget=8)
    bad = driver.submit(ask([POISON] * 50, 4))
    for _ in range(3):
        driver.step()
    if aborted:
        driver.core.abort(bad)
    driver.run()
    expect_clean(zoo, driver, ask, {bad})


def test_blocks_of_choices_that_fail_while_decoding_are_safe_to_use_again(zoo, poisoned, drive, ask):
    """Both choices write behind the prompt: one into a copy of its last block, one into the block itself."""
    driver = drive(poisoned, budget=8)
    bad = driver.submit(ask([20, 21, 22, 23, 24, 25], 9, Sampling(temperature=0, logit_bias={POISON: 1e4}), n=2))
    driver.run()
    assert driver.tokens[bad] == {0: [POISON], 1: [POISON]}
    expect_clean(zoo, driver, ask, {bad})


def expect_clean(zoo, driver, ask, bad) -> None:
    """As many requests as there are blocks, each with positions that are allocated and not yet written."""
    expected = {(20 + i, 21, 22, 23, 24): [] for i in range(20)}
    for prompt in expected:
        expected[prompt] = zoo.generate("gpt_neox", prompt, 3)
    jobs = [driver.submit(ask(prompt, 3)) for prompt, tokens in expected.items() if POISON not in tokens]
    assert len(jobs) >= 16
    driver.run()
    assert set(driver.failures) <= bad
    for job in jobs:
        assert driver.tokens[job][0] == expected[tuple(job.request.prompt)]


def test_abort_returns_every_block(zoo, drive, ask):
    driver = drive(zoo.executor("llama"), budget=6)
    jobs = [driver.submit(ask([*range(20, 20 + 9 * i)], 30, n=i)) for i in range(1, 5)]
    available = driver.core.pool.available
    for number, job in enumerate(jobs):
        for _ in range(2 * number):
            driver.step()
        driver.core.abort(job)
        driver.core.abort(job)
    driver.collect()
    assert not driver.core.busy
    assert driver.core.pool.available == available
    assert driver.finished == set(jobs)
    assert driver.failures == {}


def test_ending_one_choice_leaves_the_others(zoo, drive, ask):
    driver = drive(zoo.executor("llama"))
    job = driver.submit(ask([20, 21, 22], 10, n=3))
    for _ in range(4):
        driver.step()
    driver.core.end(job, 1)
    driver.core.end(job, 1)
    driver.run()
    assert [len(driver.tokens[job][i]) for i in range(3)] == [10, 4, 10]
    assert job in driver.finished
    assert driver.core.pool.usage == 0


class Fragile:
    """An executor that fails when it meets a token."""

    def __init__(self, executor, token):
        self._executor = executor
        self._token = token

    def __getattr__(self, name):
        return getattr(self._executor, name)

    def forward(self, spans):
        if any(self._token in span.tokens for span in spans):
            raise RuntimeError("out of luck")
        return self._executor.forward(spans)


def test_a_step_that_crashes_ends_its_batch_and_no_more(zoo, drive, ask):
    driver = drive(Fragile(zoo.executor("llama"), 299), seqs=2)
    beside = driver.submit(ask([20, 21, 22], 10))
    driver.step()
    bad = driver.submit(ask([30, 299], 10))
    waiting = driver.submit(ask([40, 41], 10))
    driver.run()
    assert set(driver.failures) == {beside, bad}
    assert driver.tokens[waiting][0] == zoo.generate("llama", [40, 41], 10)
    assert driver.core.pool.usage == 0
    assert driver.core.counters.running == 0


def test_reset_ends_everything_and_starts_clean(zoo, drive, ask, monkeypatch):
    driver = drive(zoo.executor("llama"))
    jobs = [driver.submit(ask([20, 21, 22 + i], 10, n=2)) for i in range(3)]
    driver.step()
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "plan", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            driver.step()
    driver.core.reset("the engine failed")
    driver.collect()
    assert set(driver.failures) == driver.finished == set(jobs)
    after = driver.submit(ask([20, 21, 22], 10))
    driver.run()
    assert driver.cached(after) == 0
    assert driver.tokens[after][0] == zoo.generate("llama", [20, 21, 22], 10)
