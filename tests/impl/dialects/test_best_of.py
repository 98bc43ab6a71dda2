"""More candidates than choices: the likeliest are returned."""

from __future__ import annotations

import pytest
from isogloss.engine.api import Delta, Finish, Started, TokenLogprob, TokenScore
from isogloss.engine.scripted import ScriptedEngine
from isogloss_spec.faults import Fault

LOGPROBS = [-3.0, -1.0, -4.0, -2.0]


def worth(logprob):
    return TokenScore(TokenLogprob(65, "A", logprob, 1), (), "A")


def candidates(request):
    """Candidate i says its number; its two tokens add up to LOGPROBS[i], if anybody asks for scores."""
    yield Started()
    for choice in range(request.n):
        half = () if request.logprobs is None else (worth(LOGPROBS[choice] / 2),)
        yield Delta(choice, str(choice), (65,), half)
        yield Delta(choice, "!", (66,), half, Finish("stop"))


@pytest.fixture(params=["nim", "atoma"])
def of_script(request, calling, playing):
    engine = playing(candidates)
    return engine, calling(engine, request.param)


async def test_the_likeliest_come_first(of_script):
    engine, caller = of_script
    body = await caller.ask(n=2, best_of=4)
    assert [(choice["index"], choice["text"]) for choice in body["choices"]] == [(0, "1!"), (1, "3!")]
    assert all(choice["logprobs"] is None for choice in body["choices"])
    assert (engine.requests[0].n, engine.requests[0].logprobs) == (4, 0)


async def test_all_generated_tokens_count(of_script):
    _, caller = of_script
    usage = (await caller.ask(prompt=["ab", "c"], best_of=3))["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (3, 12, 15)


async def test_every_prompt_has_its_best(of_script):
    _, caller = of_script
    body = await caller.ask(prompt=["a", "b"], n=2, best_of=3, echo=True)
    assert [choice["text"] for choice in body["choices"]] == ["a1!", "a0!", "b1!", "b0!"]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]


async def test_logprobs_of_the_best(of_script):
    engine, caller = of_script
    (choice,) = (await caller.ask(best_of=4, logprobs=0))["choices"]
    assert choice["logprobs"]["token_logprobs"] == [-0.5, -0.5]
    assert engine.requests[0].logprobs == 0


@pytest.mark.parametrize("best_of", [None, 2])
async def test_as_many_as_n_keep_their_order(of_script, best_of):
    engine, caller = of_script
    body = await caller.ask(n=2, best_of=best_of)
    assert [choice["text"] for choice in body["choices"]] == ["0!", "1!"]
    assert engine.requests[0].logprobs is None


async def test_as_many_as_n_can_be_streamed(of_script):
    _, caller = of_script
    chunks = await caller.chunks(n=2, best_of=2)
    assert sorted(chunk["choices"][0]["text"] for chunk in chunks) == ["!", "!", "0", "1"]
    with pytest.raises(Fault):
        await caller.chunks(best_of=2)


async def test_with_an_engine(calling):
    """The best of some choices is the likeliest of the same choices."""
    engine = ScriptedEngine()
    await engine.start()
    caller = calling(engine)
    fields = {"seed": 4, "max_tokens": 6, "logprobs": 0, "ignore_eos": True}
    choices = (await caller.ask(n=5, **fields))["choices"]
    (best,) = (await caller.ask(best_of=5, **fields))["choices"]
    likeliest = max(choices, key=lambda choice: sum(choice["logprobs"]["token_logprobs"]))
    assert best["text"] == likeliest["text"]
    assert len({choice["text"] for choice in choices}) > 1
