"""The embedded model, in float32, against transformers' generate()."""

from __future__ import annotations

import asyncio

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isogloss.engine.api import Delta, Sampling, Stopping
from isogloss.engine.torch.engine import TorchEngine
from isogloss.engine.torch.settings import TorchSettings

pytestmark = pytest.mark.model

QUESTIONS = [
    "What is the capital of France? Answer in one sentence.",
    "List three colors.",
    "Explain gravity to a child in two sentences please.",
    "Hi",
]


def as_chat(question: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
async def engine(smollm2):
    assert smollm2.is_dir()
    engine = TorchEngine(TorchSettings("smollm2", dtype="fp32", max_model_len=512, prefill_budget=24))
    await engine.start()
    yield engine
    await engine.stop()


async def test_greedy_tokens_equal_generate(engine, smollm2, ask, greedy_reference):
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    prompts = [engine.tokenizer.encode(as_chat(question)) for question in QUESTIONS]

    async def tokens(prompt, delay):
        await asyncio.sleep(delay)
        deltas = [e async for e in engine.generate(ask(prompt, 20)) if isinstance(e, Delta)]
        return [token for delta in deltas for token in delta.token_ids]

    results = await asyncio.gather(*(tokens(prompt, 0.1 * i) for i, prompt in enumerate(prompts)))
    assert results == [greedy_reference(model, prompt, 20) for prompt in prompts]


async def test_beams_equal_those_of_transformers(engine, smollm2, ask, beam_reference):
    """One search alone, then three in one batch with plain requests."""
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    prompts = [engine.tokenizer.encode(as_chat(question)) for question in QUESTIONS[1:]]

    async def search(prompt):
        request = ask(prompt, 16, stopping=Stopping(16), n=2, beams=4)
        return [e for e in [e async for e in engine.generate(request)] if isinstance(e, Delta)]

    async def plain(prompt):
        return [e async for e in engine.generate(ask(prompt, 24))]

    expected = [beam_reference(model, prompt, 4, 2, 16, engine.tokenizer.eos_token_ids) for prompt in prompts]
    alone = await search(prompts[0])
    searched = (await asyncio.gather(*map(search, prompts), *map(plain, prompts)))[: len(prompts)]
    for deltas, sequences in zip([alone, *searched], [expected[0], *expected], strict=True):
        assert [list(delta.token_ids) for delta in deltas] == sequences
        assert [delta.choice for delta in deltas] == [0, 1]
        for delta in deltas:
            assert delta.text == engine.tokenizer.decode(delta.token_ids)
            assert len(delta.finish.timing.decode) == len(delta.token_ids) - 1


async def test_it_knows_the_capital_of_france_and_stops(engine, ask):
    prompt = engine.tokenizer.encode(as_chat(QUESTIONS[0]))
    request = ask(prompt, 40, Sampling(temperature=0), stopping=Stopping(40))
    deltas = [e async for e in engine.generate(request) if isinstance(e, Delta)]
    assert "Paris" in "".join(delta.text for delta in deltas)
    assert deltas[-1].finish.reason == "stop"
    assert engine.card.chat_template
    assert (engine.card.name, engine.card.vocab_size, engine.card.context_length) == ("smollm2", 49152, 512)


async def texts_of(engine, request):
    """Plain text, joined text of the deltas and tokens of the one choice of a request."""
    deltas = [event async for event in engine.generate(request) if isinstance(event, Delta)]
    tokens = [token for delta in deltas for token in delta.token_ids]
    return "".join(delta.text for delta in deltas), tokens, deltas[-1].finish


WORDS = st.sampled_from(["the", " cat", "ocean", "Ünï", "東京", "🦊", "\n", "1 2 3", "<b>", "def f(x):"])


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    words=st.lists(WORDS, min_size=1, max_size=6),
    seed=st.integers(0, 2**63 - 1),
    temperature=st.sampled_from([0.0, 0.7, 1.0, 2.0]),
    stop=st.lists(st.sampled_from(["e", "th", " a", "\n", "🦊"]), max_size=2),
    length=st.integers(1, 10),
)
async def test_any_request_keeps_the_laws(engine, ask, words, seed, temperature, stop, length):
    """Of the real model: streams repeat with a seed, join to the decoded whole, and never show a stop string."""
    prompt = engine.tokenizer.encode("".join(words))
    sampling = Sampling(temperature=temperature, seed=seed)
    request = ask(prompt, length, sampling=sampling, stopping=Stopping(length, stop=tuple(stop)))
    text, tokens, finish = await texts_of(engine, request)
    assert (text, tokens) == (await texts_of(engine, request))[:2]
    assert 1 <= len(tokens) <= length
    assert not any(string in text for string in stop)
    if finish.reason == "length":
        assert len(tokens) == length
    whole = engine.tokenizer.decode([*prompt, *tokens])[len(engine.tokenizer.decode(prompt)) :]
    assert whole.startswith(text.rstrip("\ufffd"))
    assert finish.stop is not None or text == whole


async def test_bfloat16_agrees_with_itself_in_company(ask):
    """Alone and in a batch of eight, last bits of bfloat16 differ, and now and then a token with all that follow it."""
    engine = TorchEngine(TorchSettings("smollm2", dtype="bf16", max_model_len=512))
    await engine.start()
    try:
        prompts = [
            engine.tokenizer.encode(as_chat(f"{question} Number {i}.")) for i, question in enumerate(QUESTIONS * 2)
        ]
        requests = [ask(prompt, 24, stopping=Stopping(24, ignore_eos=True)) for prompt in prompts]
        alone = [(await texts_of(engine, request))[1] for request in requests]
        together = [tokens for _, tokens, _ in await asyncio.gather(*(texts_of(engine, r) for r in requests))]
    finally:
        await engine.stop()
    shared = [
        next((i for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b), 24)
        for pair in zip(alone, together, strict=True)
    ]
    rate = sum(shared) / (24 * len(shared))
    print(f"bfloat16: {rate:.0%} of tokens come before the first difference, {shared.count(24)} of {len(shared)} equal")
    assert rate >= 0.5
