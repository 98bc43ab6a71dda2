"""`suffix`: which prompt the engine gets, and what is refused."""

from __future__ import annotations

import pytest
from isogloss.engine.infill import FORMATS, Infill
from isogloss.engine.scripted.vocabulary import ByteTokenizer
from isogloss_spec.faults import Fault

START, HOLE, END, PAD = 250, 251, 252, 253


class InfillTokenizer(ByteTokenizer):
    """The byte tokenizer with tokens for fill-in-the-middle."""

    @property
    def infill(self):
        form = FORMATS[0]
        ids = {form.start: START, form.hole: HOLE, form.end: END, "<|fim_pad|>": PAD}
        return Infill(form, ids, lambda text, special: self.encode(text, add_special_tokens=special))


@pytest.fixture(params=["nim", "atoma"])
def dialect(request):
    return request.param


@pytest.fixture
def engine(playing, engine):
    engine.tokenizer = InfillTokenizer()
    engine.features = frozenset({"suffix"})
    return engine


async def test_the_prompt_surrounds_the_hole(caller, engine):
    await caller.ask(prompt="def f(", suffix="return")
    (request,) = engine.requests
    encode = engine.tokenizer.encode
    assert request.prompt == [START, *encode("def f("), HOLE, *encode("return"), END]
    assert request.stopping.stop_token_ids == {START, HOLE, END, PAD}


async def test_each_of_several_prompts_gets_the_suffix(caller, engine):
    await caller.ask(prompt=["a", "b"], suffix="c")
    encode = engine.tokenizer.encode
    asked = sorted(request.prompt for request in engine.requests)
    assert asked == sorted([START, *encode(text), HOLE, *encode("c"), END] for text in "ab")


async def test_all_tokens_of_the_prompt_are_counted(caller):
    body = await caller.ask(prompt="a", suffix="b" * 7)
    assert caller.context["prompt_tokens_max"] == body["usage"]["prompt_tokens"] >= 5


async def test_an_echo_shows_what_the_client_wrote_as_its_prompt(caller):
    plain = await caller.ask(prompt="abc", echo=True)
    filled = await caller.ask(prompt="abc", suffix="def", echo=True)
    assert filled["choices"][0]["text"] == plain["choices"][0]["text"]


@pytest.mark.parametrize("suffix", [None, "", ...])
async def test_no_suffix_is_a_plain_completion(caller, engine, suffix):
    engine.features = frozenset()
    await caller.ask(prompt="abc", suffix=suffix)
    await caller.ask(prompt=[65, 66], suffix=suffix)
    assert [request.prompt for request in engine.requests] == [engine.tokenizer.encode("abc"), [65, 66]]
    assert not engine.requests[0].stopping.stop_token_ids


@pytest.mark.parametrize("prompt", [[65, 66], [[65], [66]]])
async def test_token_ids_are_refused(caller, prompt):
    with pytest.raises(Fault, match="rule") as caught:
        await caller.ask(prompt=prompt, suffix="x")
    assert caught.value.param == "suffix"


async def test_a_model_without_such_tokens_refuses(calling, playing, dialect):
    engine = playing(None)
    with pytest.raises(Fault, match="unsupported_feature"):
        await calling(engine, dialect).ask(suffix="x")
