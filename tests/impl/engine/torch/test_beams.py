"""Beam search against transformers' own, through every path of the scheduler."""

from __future__ import annotations

import random

import pytest
import torch
from isogloss.engine.api import EngineRefused, GenerationRequest, Sampling, Stopping
from isogloss.engine.tokens import Sampled
from isogloss.engine.torch.gate import Capacity, Gate
from isogloss.engine.torch.scheduler import Scheduler

PROMPT = [*range(40, 59)]


def beams(prompt, width, n, count, *, ignore_eos=False, min_tokens=0, sampling=None, **more):
    stopping = Stopping(count, min_tokens=min_tokens, ignore_eos=ignore_eos)
    return GenerationRequest("r", list(prompt), stopping, sampling or Sampling(), n=n, beams=width, **more)


def found(driver, job):
    return [driver.tokens[job][index] for index in range(job.request.n)]


@pytest.fixture
def preemptions(monkeypatch):
    seen = []
    original = Scheduler._preempt

    def counted(self, choice, plan):
        seen.append(choice)
        original(self, choice, plan)

    monkeypatch.setattr(Scheduler, "_preempt", counted)
    return seen


def likely_ends(zoo, family, model, beam_reference, count):
    """Tokens that beams come across early, so that some end soon and others go on."""
    tokens = [token for row in beam_reference(model, PROMPT, 6, 6, 4) for token in row]
    return frozenset(sorted(set(tokens))[:count])


@pytest.mark.parametrize("width, n", [(1, 1), (3, 2), (6, 6)])
def test_beams_equal_those_of_transformers(zoo, family, drive, beam_reference, width, n):
    model = zoo.load(family)
    driver = drive(zoo.executor(family), budget=7)
    for ends in (frozenset(), likely_ends(zoo, family, model, beam_reference, 1), frozenset(range(2, 320, 9))):
        job = driver.submit(beams(PROMPT, width, n, 12), ends)
        driver.run()
        assert found(driver, job) == beam_reference(model, PROMPT, width, n, 12, ends)
    assert driver.core.pool.usage == 0


def test_ends_are_told_and_may_be_ignored_or_held_back(zoo, drive, beam_reference):
    model = zoo.load("llama")
    ends = frozenset(row[2] for row in beam_reference(model, PROMPT, 4, 4, 9)) | frozenset(range(2, 320, 9))
    driver = drive(zoo.executor("llama"))
    plain = driver.submit(beams(PROMPT, 4, 4, 9), ends)
    ignoring = driver.submit(beams(PROMPT, 4, 4, 9, ignore_eos=True), ends)
    late = driver.submit(beams(PROMPT, 4, 4, 9, min_tokens=6), ends)
    driver.run()
    assert found(driver, ignoring) == beam_reference(model, PROMPT, 4, 4, 9)
    assert found(driver, late) == beam_reference(model, PROMPT, 4, 4, 9, ends, min_new_tokens=6)
    assert found(driver, late) != found(driver, plain)
    for job in (plain, ignoring, late):
        told = {e.choice: e.end.reason for e in driver.events[job] if isinstance(e, Sampled) and e.end}
        by_rule = ["stop" if tokens[-1] in ends and job is not ignoring else "length" for tokens in found(driver, job)]
        assert [told[index] for index in range(4)] == by_rule
    assert "stop" in {e.end.reason for e in driver.events[plain] if isinstance(e, Sampled) and e.end}


def test_a_repetition_penalty_is_that_of_transformers(zoo, drive, beam_reference):
    driver = drive(zoo.executor("llama"))
    job = driver.submit(beams(PROMPT, 3, 3, 14, sampling=Sampling(repetition_penalty=1.7)))
    driver.run()
    expected = beam_reference(zoo.load("llama"), PROMPT, 3, 3, 14, repetition_penalty=1.7)
    assert found(driver, job) == expected
    assert expected != beam_reference(zoo.load("llama"), PROMPT, 3, 3, 14)


def test_a_busy_batch_changes_nothing(zoo, family, drive, ask, beam_reference):
    """Beams of several widths and plain requests come and go; prompts are prefilled in small chunks."""
    rng = random.Random(5)
    model = zoo.load(family)
    driver = drive(zoo.executor(family, blocks=600), budget=9)
    searches, plain = [], []
    for number in range(6):
        prompt = [rng.randrange(2, 300) for _ in range(rng.randrange(1, 30))]
        width = rng.randrange(1, 6)
        ends = frozenset(range(2 + number, 320, 29))
        searches.append((driver.submit(beams(prompt, width, max(1, width - 1), 10), ends), ends))
        plain.append(driver.submit(ask(prompt, 8)))
        for _ in range(number % 3):
            driver.step()
    driver.run()
    for job, ends in searches:
        request = job.request
        assert found(driver, job) == beam_reference(model, request.prompt, request.beams, request.n, 10, ends)
    for job in plain:
        assert driver.tokens[job][0] == zoo.generate(family, job.request.prompt, 8)
    assert driver.core.pool.usage == 0


@pytest.mark.parametrize("blocks", [36, 40, 48, 56])
def test_preemption_changes_no_beam(zoo, drive, ask, beam_reference, preemptions, blocks):
    """Searches that push each other out, in different orders of urgency, all come to their end."""
    rng = random.Random(blocks)
    model = zoo.load("llama")
    driver = drive(zoo.executor("llama", blocks=blocks), budget=16, seqs=14)
    jobs = []
    for number in range(5):
        prompt = [rng.randrange(2, 300) for _ in range(rng.randrange(1, 25))]
        jobs.append(driver.submit(beams(prompt, 4, 3, 16, priority=rng.randrange(3)), frozenset({5, 90, 200})))
        driver.submit(ask(prompt, 30, priority=rng.randrange(3)))
        for _ in range(number):
            driver.step()
    driver.run()
    assert preemptions
    for job in jobs:
        assert found(driver, job) == beam_reference(model, job.request.prompt, 4, 3, 16, {5, 90, 200})
    assert driver.core.pool.usage == 0


def test_more_beams_than_seats_survive_preemption(zoo, drive, ask, beam_reference, preemptions):
    driver = drive(zoo.executor("llama", blocks=36), seqs=2)
    job = driver.submit(beams(PROMPT, 5, 5, 12))
    for _ in range(4):
        driver.step()
    rival = driver.submit(ask([7] * 60, 20, priority=-1))
    driver.run()
    assert {choice.job for choice in preemptions} <= {job, rival}
    assert found(driver, job) == beam_reference(zoo.load("llama"), PROMPT, 5, 5, 12)


def test_beams_share_the_blocks_of_their_prompt(zoo, drive):
    driver = drive(zoo.executor("llama"))
    driver.submit(beams([*range(10, 42)], 5, 5, 4))
    for _ in range(3):
        driver.step()
    # 32 positions are 8 blocks of 4 for all five; what comes after lies in at most one block each.
    assert 9 <= round(driver.core.pool.usage * driver.core.pool.capacity) <= 13
    driver.run()
    assert driver.core.pool.usage == 0


def test_scores_are_those_of_the_model(zoo, drive):
    driver = drive(zoo.executor("llama"))
    job = driver.submit(beams(PROMPT, 4, 3, 8, logprobs=2))
    driver.run()
    means = []
    for index in range(3):
        events = [e for e in driver.events[job] if isinstance(e, Sampled) and e.choice == index]
        tokens = PROMPT + [e.token_id for e in events]
        with torch.inference_mode():
            logits = zoo.load("llama")(input_ids=torch.tensor([tokens])).logits[0]
        logprobs = torch.log_softmax(logits.double(), -1)
        for place, event in enumerate(events, len(PROMPT)):
            row = logprobs[place - 1]
            assert event.score.logprob == pytest.approx(row[event.token_id].item(), abs=1e-3)
            assert [token for token, _ in event.score.top] == row.topk(2).indices.tolist()
        means.append(sum(e.score.logprob for e in events) / len(events))
    assert means == sorted(means, reverse=True)


def test_nothing_is_told_before_the_end_but_steps_are_counted(zoo, drive):
    driver = drive(zoo.executor("llama"))
    job = driver.submit(beams(PROMPT, 3, 2, 5))
    steps = 0
    while driver.core.busy:
        driver.core.step()
        parcel = driver.core.outbox[job]
        steps += parcel.searched
        assert any(isinstance(e, Sampled) for e in parcel.events) == parcel.last
        driver.collect()
    assert steps == 5
    assert [e.choice for e in driver.events[job] if isinstance(e, Sampled)] == [0] * 5 + [1] * 5


def test_an_aborted_search_leaves_nothing(zoo, drive):
    driver = drive(zoo.executor("llama"))
    job = driver.submit(beams(PROMPT, 4, 4, 20))
    for _ in range(4):
        driver.step()
    driver.core.abort(job)
    assert not driver.core.busy
    assert driver.core.pool.usage == 0
    assert not driver.core._searches._searches


def test_numbers_that_are_not_finite_fail_the_search_alone(zoo, drive, ask, monkeypatch):
    executor = zoo.executor("llama")
    driver = drive(executor)
    job, other = driver.submit(beams(PROMPT, 3, 3, 8)), driver.submit(ask([5, 6, 7], 8))
    for _ in range(3):
        driver.step()
    original = executor.forward

    def broken(spans):
        logits = original(spans).clone()
        logits[0] = float("nan")
        return logits

    monkeypatch.setattr(executor, "forward", broken)
    driver.step()
    monkeypatch.undo()
    driver.run()
    assert list(driver.failures) == [job]
    assert driver.tokens[other][0] == zoo.generate("llama", [5, 6, 7], 8)
    assert driver.core.pool.usage == 0


@pytest.mark.parametrize(
    "request_",
    [
        beams(PROMPT, 2, 3, 5),
        beams(PROMPT, 321, 1, 5),
        beams(PROMPT, 40, 1, 5),
        GenerationRequest("r", PROMPT, Stopping(5, stop=("x",)), beams=2),
        GenerationRequest("r", PROMPT, Stopping(5, stop_token_ids=frozenset({3})), beams=2),
    ],
)
def test_what_can_never_be_searched_is_refused(request_):
    gate = Gate(None, Capacity(context_length=256, vocab_size=320, cache_tokens=400, block_size=4))
    with pytest.raises(EngineRefused):
        gate.open(request_)
