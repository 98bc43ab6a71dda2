"""Guides in the sampler and in a choice, without a model."""

from __future__ import annotations

import asyncio

import pytest
import torch
from isogloss.engine.api import GenerationRequest, Guide, Sampling, Stopping
from isogloss.engine.guides.compiler import GuideCompiler
from isogloss.engine.guides.matcher import ReadyGuide
from isogloss.engine.scripted.vocabulary import END, VOCAB_SIZE, guide_vocabulary
from isogloss.engine.torch.blocks import PrefixKeys
from isogloss.engine.torch.jobs import Choice, Job, first_choice
from isogloss.engine.torch.sampler import SamplerRow, sample


@pytest.fixture(scope="module")
def ready():
    compiler = GuideCompiler(guide_vocabulary())

    def compile_it(pattern: str, **options: bool) -> ReadyGuide:
        return asyncio.run(compiler.ready(Guide("regex", pattern, **options)))

    yield compile_it
    compiler.close()


def choice_of(guide: ReadyGuide, **stopping) -> Choice:
    request = GenerationRequest(
        "r", [1, 2], Stopping(**{"max_tokens": 50, **stopping}), Sampling(temperature=0), guide=guide
    )
    return first_choice(Job(request, 0, frozenset((END,))), PrefixKeys(16))


def run(choices: list[Choice]) -> list[str]:
    """Texts and reasons, all choices in one batch until each has ended."""
    live, ends = list(choices), {}
    while live:
        logits = torch.randn(len(live), VOCAB_SIZE, generator=torch.Generator().manual_seed(len(live[0].tokens)))
        for choice, pick in zip(live, sample(logits, [choice.sampler for choice in live]), strict=True):
            end = choice.append(pick.token)
            if end is not None:
                ends[id(choice)] = end
        live = [choice for choice in live if id(choice) not in ends]
    return [bytes(t for t in c.output if t < 256).decode() + f" {ends[id(c)].reason}" for c in choices]


@pytest.mark.parametrize("rows", [1, 20])
def test_only_guided_rows_are_masked(ready, rows: int) -> None:
    """Also where the masks are computed in several threads."""
    logits = torch.randn(2 * rows, VOCAB_SIZE, generator=torch.Generator().manual_seed(1))
    letters = "abcdefghijklmnopqrst"
    guides = [ready(f"{letters[row]}+").matcher() for row in range(rows)]
    batch = [SamplerRow(Sampling(temperature=0), guide=guides[i // 2] if i % 2 else None) for i in range(2 * rows)]
    before = logits.clone()
    picks = [pick.token for pick in sample(logits, batch)]
    assert torch.equal(logits, before)
    assert picks[::2] == logits[::2].argmax(dim=1).tolist()
    assert picks[1::2] == [ord(letters[row]) for row in range(rows)]


def test_a_guide_ends_its_choice(ready) -> None:
    guide = ready("[0-9]{3}")
    found = run([choice_of(guide), choice_of(guide, min_tokens=20), choice_of(guide, max_tokens=2)])
    assert [len(text.split()[0]) for text in found] == [3, 3, 2]
    assert [text.split()[1] for text in found] == ["stop", "stop", "length"]
    [whole] = run([choice_of(guide, max_tokens=3, ignore_eos=True)])
    assert whole.endswith("stop")


def test_end_of_text_waits_for_min_tokens(ready) -> None:
    open_end = ready("[0-9]*")
    [choice] = [choice_of(open_end, min_tokens=30)]
    run([choice])
    assert choice.output[-1] == END or choice.generated == 50
    assert choice.generated >= 30
    assert END not in choice.output[:-1]


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize(("yields", "min_tokens", "last"), [(True, 0, END), (True, 9, ord("a")), (False, 0, ord("a"))])
def test_what_the_model_would_rather_say_ends_a_guide_that_yields(
    ready, temperature: float, yields: bool, min_tokens: int, last: int
) -> None:
    choice = choice_of(ready("a+", yields=yields), min_tokens=min_tokens)
    choice.sampler.sampling = Sampling(temperature=temperature, seed=1)
    logits = torch.full((1, VOCAB_SIZE), -50.0)
    logits[0, ord("b")], logits[0, ord("a")] = 40.0, 10.0
    first = sample(logits, [choice.sampler])[0].token
    choice.append(first)
    assert (first, sample(logits, [choice.sampler])[0].token) == (ord("a"), last)


def test_forks_follow_their_own_way(ready) -> None:
    first = choice_of(ready("a|bc"))
    twin = first.fork(1)
    first.append(ord("a"))
    assert sample(torch.zeros(1, VOCAB_SIZE), [twin.sampler])[0].token in (ord("a"), ord("b"))
    twin.append(ord("b"))
    assert sample(torch.zeros(1, VOCAB_SIZE), [twin.sampler])[0].token == ord("c")


def test_a_guide_that_failed_leaves_nothing_to_choose(ready, monkeypatch) -> None:
    rows = [choice_of(ready("x+")).sampler, SamplerRow(Sampling(temperature=0))]
    monkeypatch.setattr("isogloss.engine.guides.matcher._SLOWEST", -1.0)
    assert [pick is None for pick in sample(torch.zeros(2, VOCAB_SIZE), rows)] == [True, False]
