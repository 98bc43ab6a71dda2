"""Random lives of requests over an executor that is a table of tokens.

Its logits are a function of the tokens that the block table leads to. So each wrong block, each
missing copy and each stale prefix changes what comes out.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isogloss.engine.api import Sampling
from isogloss.engine.torch.executor import Span

VOCABULARY = 5
BLOCK_SIZE = 3
UNWRITTEN = -1


def next_token(context: Sequence[int]) -> int:
    return zlib.crc32(bytes(context)) % VOCABULARY


class TokenTable:
    """An executor whose cache holds the tokens themselves."""

    vocab_size = VOCABULARY
    block_size = BLOCK_SIZE

    def __init__(self, blocks: int) -> None:
        self.block_count = blocks
        self._cache = [[UNWRITTEN] * BLOCK_SIZE for _ in range(blocks)]

    def forward(self, spans: Sequence[Span]) -> torch.Tensor:
        assert spans
        written: set[tuple[int, int]] = set()
        for span in spans:
            for position, token in enumerate(span.tokens, span.start):
                place = span.table[position // BLOCK_SIZE], position % BLOCK_SIZE
                assert place not in written, "two sequences write to one place"
                assert place[0] != 0, "the null block is written"
                written.add(place)
                self._cache[place[0]][place[1]] = token
        rows = [row for span in spans for row in self._rows(span)]
        return torch.stack(rows) if rows else torch.empty(0, VOCABULARY)

    def _rows(self, span: Span) -> list[torch.Tensor]:
        flat = [token for block in span.table for token in self._cache[block]]
        end = span.start + len(span.tokens)
        contexts = [flat[: position + 1] for position in range(end - span.wanted, end)]
        assert all(UNWRITTEN not in context for context in contexts)
        return [torch.nn.functional.one_hot(torch.tensor(next_token(c)), VOCABULARY).float() for c in contexts]

    def copy_block(self, source: int, target: int) -> None:
        self._cache[target] = self._cache[source].copy()

    def clear_blocks(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            self._cache[block] = [UNWRITTEN] * BLOCK_SIZE


requests = st.fixed_dictionaries(
    {
        "prompt": st.lists(st.integers(0, 1), min_size=1, max_size=14),
        "count": st.integers(1, 12),
        "n": st.integers(1, 3),
        "priority": st.integers(0, 2),
        "bias": st.booleans(),
        "scored": st.booleans(),
        "delay": st.integers(0, 4),
        "abort_after": st.none() | st.integers(0, 8),
        "end_after": st.none() | st.integers(0, 8),
    }
)


def expected_tokens(case) -> list[int]:
    tokens = list(case["prompt"])
    for _ in range(case["count"]):
        # The bias outweighs the one that next_token gets.
        tokens.append(0 if case["bias"] else next_token(tokens))
    return tokens[len(case["prompt"]) :]


@settings(max_examples=250, deadline=None)
@given(
    cases=st.lists(requests, min_size=1, max_size=7),
    blocks=st.integers(10, 30),
    seats=st.integers(1, 5),
    budget=st.integers(1, 20),
)
def test_random_lives(drive, ask, cases, blocks, seats, budget):
    driver = drive(TokenTable(blocks), seqs=seats, budget=budget)
    jobs = {}
    plans = []
    for case in cases:
        for _ in range(case["delay"]):
            advance(driver, plans)
        sampling = Sampling(temperature=0.0, logit_bias={0: 9.0} if case["bias"] else {})
        scores = 0 if case["scored"] else None
        more = {"n": case["n"], "priority": case["priority"], "prompt_logprobs": scores}
        job = driver.submit(ask(case["prompt"], case["count"], sampling, **more))
        jobs[job] = case
        plans.append([job, case, 0])
    for _ in range(2000):
        if not driver.core.busy:
            break
        advance(driver, plans)
    driver.collect()
    assert not driver.core.busy
    assert driver.failures == {}
    assert driver.finished == set(jobs)
    assert driver.core.pool.usage == 0
    assert driver.core.counters.running == 0
    for job, case in jobs.items():
        check(driver, job, case)


def advance(driver, plans) -> None:
    for plan in plans:
        job, case, steps = plan
        if case["abort_after"] == steps:
            driver.core.abort(job)
        if case["end_after"] == steps:
            driver.core.end(job, case["n"] - 1)
        plan[2] += 1
    if driver.core.busy:
        driver.step()


def check(driver, job, case) -> None:
    expected = expected_tokens(case)
    for choice in range(case["n"]):
        tokens = driver.tokens[job][choice]
        assert tokens == expected[: len(tokens)]
        ended = case["end_after"] is not None and choice == case["n"] - 1
        if case["abort_after"] is None and not ended:
            assert len(tokens) == case["count"]
            if case["scored"]:
                assert len(driver.prompt_scores(job)) == len(case["prompt"])
