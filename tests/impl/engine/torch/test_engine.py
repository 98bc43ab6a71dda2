from __future__ import annotations

import asyncio
import contextlib

import pytest
from isogloss.engine.api import (
    Delta,
    Engine,
    EngineFailure,
    EngineRefused,
    GenerationRequest,
    PromptScores,
    Sampling,
    Started,
    Stopping,
)
from isogloss.engine.torch.engine import TorchEngine, assemble
from isogloss.engine.torch.loading import build_executor, load_model
from isogloss.engine.torch.settings import TorchSettings


@pytest.fixture
async def engine(zoo):
    settings = TorchSettings(
        str(zoo.folder("llama")), device="cpu", dtype="fp32", threads=1, max_num_seqs=4, kv_cache_gib=0.001
    )
    engine = TorchEngine(settings)
    await engine.start()
    yield engine
    await engine.stop()


async def collect(engine, request):
    return [event async for event in engine.generate(request)]


async def test_text_and_tokens_of_a_small_model(engine: Engine, zoo, ask):
    prompt = engine.tokenizer.encode("The quick brown fox")
    events = await collect(engine, ask(prompt, 12, logprobs=1, prompt_logprobs=1))
    assert isinstance(events[0], Started)
    assert isinstance(events[1], PromptScores)
    deltas = [event for event in events if isinstance(event, Delta)]
    tokens = [token for delta in deltas for token in delta.token_ids]
    assert tokens == zoo.generate("llama", prompt, 12)
    assert (
        "".join(delta.text for delta in deltas)
        == engine.tokenizer.decode(prompt + tokens)[len("The quick brown fox") :]
    )
    assert len(events[1].scores) == len(prompt)
    assert deltas[-1].finish.reason == "length"
    assert len(deltas[-1].finish.timing.batch_sizes) == 12


async def test_the_card_says_what_is_served(engine):
    card = engine.card
    assert (card.name, card.context_length, card.vocab_size) == ("llama", 256, 320)
    assert (card.layers, card.hidden_size, card.chat_template) == (3, 32, None)
    assert engine.features == {"beam", "guided"}
    assert engine.tokenizer.eos_token_ids == frozenset({1})
    assert engine.status().ready


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - a status is polled
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": []},
        {"prompt": [320]},
        {"prompt": [-1]},
        {"prompt": [5] * 250},
        {"stopping": Stopping(0)},
        {"stopping": Stopping(254)},
        {"n": 0},
        {"sampling": Sampling(logit_bias={320: 1.0})},
    ],
)
async def test_what_can_never_be_served_is_refused(engine, change):
    request = {"prompt": [5, 6, 7], "stopping": Stopping(10), **change}
    with pytest.raises(EngineRefused):
        await collect(engine, GenerationRequest("r", **request))
    assert engine.status().waiting == 0


async def test_the_longest_request_that_fits_is_served(engine):
    request = GenerationRequest("r", [5, 6, 7], Stopping(253, ignore_eos=True), Sampling(temperature=0))
    tokens = [t for event in await collect(engine, request) if isinstance(event, Delta) for t in event.token_ids]
    assert len(tokens) == 253


async def test_a_request_larger_than_the_cache_is_refused(zoo, ask):
    engine = TorchEngine(TorchSettings(str(zoo.folder("llama")), dtype="fp32", threads=1, kv_cache_gib=0.00005))
    await engine.start()
    blocks = int(0.00005 * 2**30) // (16 * 3 * 2 * 2 * 8 * 4)
    with pytest.raises(EngineRefused, match="KV cache"):
        await collect(engine, ask([5] * 10, blocks * 16))
    assert await collect(engine, ask([5] * 10, blocks * 16 - 9))
    await engine.stop()


async def test_stop_strings_free_the_place(engine, ask):
    prompt = engine.tokenizer.encode("The quick brown fox")
    whole = "".join(e.text for e in await collect(engine, ask(prompt, 40)) if isinstance(e, Delta))
    stop = next(c for c in whole[3:] if c.isascii())
    events = await collect(engine, ask(prompt, 200, stopping=Stopping(200, stop=(stop,), ignore_eos=True)))
    assert events[-1].finish.stop == stop
    await until(lambda: not engine.status().running)
    assert engine.status().kv_cache_usage == 0


async def test_closing_the_generator_aborts(engine, ask):
    async with contextlib.aclosing(engine.generate(ask([5, 6], 250))) as events:
        async for event in events:
            if isinstance(event, Delta):
                break
        assert engine.status().running == 1
    await until(lambda: not engine.status().running)


async def test_stop_fails_what_runs_and_start_begins_again(engine, ask):
    run = asyncio.create_task(collect(engine, ask([5, 6], 250)))
    await until(lambda: engine.status().running)
    await engine.stop()
    with pytest.raises(EngineFailure):
        await run
    assert not engine.status().ready
    with pytest.raises(EngineFailure):
        engine.card  # noqa: B018
    await engine.start()
    assert len(await collect(engine, ask([5, 6], 3))) == 4


async def test_suffix_is_served_where_the_tokenizer_has_the_tokens(zoo, tmp_path):
    """The same small model, its vocabulary's last ids named for fill-in-the-middle."""
    from transformers import AutoTokenizer  # noqa: PLC0415

    zoo.load("llama").save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(zoo.folder("llama"))
    names = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
    tokenizer.add_tokens(names, special_tokens=True)
    tokenizer.save_pretrained(tmp_path)
    engine = TorchEngine(TorchSettings(str(tmp_path), dtype="fp32", threads=1, kv_cache_gib=0.001))
    await engine.start()
    try:
        assert "suffix" in engine.features
        start, hole, end = tokenizer.convert_tokens_to_ids(names)
        prompt = engine.tokenizer.infill.encode("The quick", "fox")
        assert prompt == [start, *engine.tokenizer.encode("The quick"), hole, *engine.tokenizer.encode("fox"), end]
    finally:
        await engine.stop()


HERMES_TEMPLATE = (
    '{% if tools %}<tool_call>{"name": n, "arguments": a}{% endif %}{{ messages[0].content }}'
    "{% if enable_thinking %}<think></think>{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "settings", "tools", "reasoning"),
    [
        (None, {}, None, None),
        ("{{ messages[0].content }}", {}, None, None),
        (HERMES_TEMPLATE, {}, "qwen3", "qwen3"),
        ({"default": "x", "tool_use": '{{ tools }}<|python_tag|>{"parameters": p}'}, {}, "llama3", None),
        (HERMES_TEMPLATE, {"tool_format": None, "reasoning_format": None}, None, None),
        (None, {"tool_format": "deepseek", "reasoning_format": "deepseek_r1"}, "deepseek", "deepseek_r1"),
    ],
)
def test_formats_are_those_of_the_template_unless_they_are_set(zoo, template, settings, tools, reasoning):
    chosen = TorchSettings(str(zoo.folder("llama")), device="cpu", threads=1, kv_cache_gib=0.001, **settings)
    loaded = load_model(chosen)
    loaded.tokenizer.chat_template = template
    engine = TorchEngine(chosen)
    parts = assemble(loaded, build_executor(loaded, chosen), chosen)
    engine._parts = parts
    assert (engine.card.tool_format, engine.card.reasoning_format) == (tools, reasoning)
    assert ("tools" in engine.features) is (tools is not None)
    parts.guides.close()
