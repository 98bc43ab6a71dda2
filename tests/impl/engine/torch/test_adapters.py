"""LoRA adapters against PEFT: each alone, and several with the base in one batch."""

from __future__ import annotations

import json

import pytest
import torch
from isogloss.engine.api import Delta, EngineRefused
from isogloss.engine.torch.adapters import CONFIG, WEIGHTS, AdapterError, load_adapter
from isogloss.engine.torch.engine import TorchEngine
from isogloss.engine.torch.executor import Span, UnsupportedModelError
from isogloss.engine.torch.settings import TorchSettings
from safetensors.torch import load_file, save_file

TARGETS = {
    "llama": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    "qwen2": ["q_proj", "v_proj"],
    "qwen3": ["q_proj", "down_proj"],
    "mistral": ["k_proj", "o_proj", "up_proj"],
    "gpt2": ["c_attn", "c_fc", "c_proj"],
    "opt": ["q_proj", "fc1", "fc2"],
    "gpt_neox": ["query_key_value", "dense_4h_to_h"],
}
OPTIONS = {
    "first": {"r": 4, "lora_alpha": 16},
    "second": {"r": 8, "lora_alpha": 6, "use_rslora": True},
}
PROMPT = [*range(30, 51)]


class Adapters:
    """Trains nothing: adapters with random weights, and the models that PEFT merges from them."""

    def __init__(self, zoo, root):
        self._zoo, self._root = zoo, root
        self._made = {}

    def make(self, family, name, **options):
        """Folder and merged model."""
        key = family, name
        if key not in self._made:
            self._made[key] = self._build(family, name, OPTIONS.get(name, {"r": 4, "lora_alpha": 16}) | options)
        return self._made[key]

    def _build(self, family, name, options):
        from peft import LoraConfig, get_peft_model  # noqa: PLC0415

        torch.manual_seed(len(name))
        config = LoraConfig(task_type="CAUSAL_LM", target_modules=TARGETS[family], **options)
        model = get_peft_model(self._zoo.load(family), config)
        with torch.no_grad():
            for key, weight in model.named_parameters():
                if "lora_" in key:
                    weight.normal_(std=0.3)
        folder = self._root / family / name
        model.save_pretrained(folder)
        return folder, model.merge_and_unload().eval()

    def executor(self, family, *names):
        executor = self._zoo.executor(family, blocks=200)
        executor.add_adapters([load_adapter(name, self.make(family, name)[0], executor._model) for name in names])
        return executor


@pytest.fixture(scope="session")
def adapters(zoo, tmp_path_factory):
    pytest.importorskip("peft")
    return Adapters(zoo, tmp_path_factory.mktemp("adapters"))


@torch.inference_mode()
def logits_of(model, tokens):
    return model(input_ids=torch.tensor([tokens])).logits[0]


def test_logits_are_those_of_the_merged_model(zoo, family, adapters):
    """Two adapters and the base in each step: a prefill chunk, then a decode row and a chunk side by side."""
    executor = adapters.executor(family, "first", "second")
    models = {None: zoo.load(family), **{name: adapters.make(family, name)[1] for name in OPTIONS}}
    tables = {None: [1, 2, 3, 4, 5, 6], "first": [7, 8, 9, 10, 11, 12], "second": [13, 14, 15, 16, 17, 18]}
    parts = {name: [] for name in models}
    for cuts in ({None: 9, "first": 20, "second": 14}, {None: 21, "first": 21, "second": 21}):
        spans = []
        for name, end in cuts.items():
            start = sum(map(len, parts[name]))
            spans.append(Span(PROMPT[start:end], start, tables[name], end - start, name))
        rows = executor.forward(spans)
        for span in spans:
            parts[span.adapter].append(rows[: len(span.tokens)])
            rows = rows[len(span.tokens) :]
    for name, model in models.items():
        torch.testing.assert_close(torch.cat(parts[name]), logits_of(model, PROMPT), atol=2e-3, rtol=2e-3)
    assert not torch.allclose(torch.cat(parts["first"]), torch.cat(parts["second"]), atol=0.1)
    assert not torch.allclose(torch.cat(parts["first"]), torch.cat(parts[None]), atol=0.1)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_tokens_of_a_busy_batch_are_those_of_the_merged_models(zoo, family, adapters, drive, ask, greedy_reference):
    driver = drive(adapters.executor(family, "first", "second"), budget=9)
    models = {None: zoo.load(family), **{name: adapters.make(family, name)[1] for name in OPTIONS}}
    jobs = []
    for number in range(9):
        prompt = [*range(20 + number, 33 + 2 * number)]
        jobs.append(driver.submit(ask(prompt, 10, adapter=[None, "first", "second"][number % 3])))
        driver.step()
    driver.run()
    for job in jobs:
        expected = greedy_reference(models[job.request.adapter], job.request.prompt, 10)
        assert driver.tokens[job][0] == expected


@pytest.mark.parametrize(
    "options",
    [
        {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"layers.1.self_attn.q_proj": 40, "v_proj": 3}},
        {"use_rslora": True, "rank_pattern": {"down_proj": 6}},
        {"layers_to_transform": [1]},
    ],
)
def test_ranks_and_scalings_of_single_layers(zoo, adapters, options):
    name = str(sorted(options))
    folder, merged = adapters.make("llama", name, **options)
    executor = zoo.executor("llama")
    executor.add_adapters([load_adapter(name, folder, executor._model)])
    rows = executor.forward([Span(PROMPT, 0, [1, 2, 3, 4, 5, 6], len(PROMPT), name)])
    torch.testing.assert_close(rows, logits_of(merged, PROMPT), atol=2e-3, rtol=2e-3)


def test_a_prefix_is_shared_within_one_adapter_only(adapters, drive, ask):
    driver = drive(adapters.executor("llama", "first", "second"))
    cached = []
    for name in (None, "first", "second", "first", None):
        job = driver.submit(ask(PROMPT, 4, adapter=name))
        driver.run()
        cached.append(driver.cached(job))
    assert cached == [0, 0, 0, 20, 20]


def test_beams_keep_their_adapter(adapters, drive, ask, beam_reference):
    driver = drive(adapters.executor("llama", "first"))
    job = driver.submit(ask(PROMPT, 8, n=2, beams=3, adapter="first"))
    driver.run()
    found = [driver.tokens[job][index] for index in range(2)]
    assert found == beam_reference(adapters.make("llama", "first")[1], PROMPT, 3, 2, 8)


# -- what is refused --


def broken(folder, target, *, config=None, weights=None):
    """A copy of an adapter with something else in it; a value of None takes a key away."""
    target.mkdir()
    told = json.loads((folder / CONFIG).read_text()) | (config or {})
    (target / CONFIG).write_text(json.dumps(told))
    tensors = load_file(folder / WEIGHTS) | (weights or {})
    save_file({key: weight for key, weight in tensors.items() if weight is not None}, target / WEIGHTS)
    return target


Q = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"config": {"peft_type": "IA3"}}, "type LORA"),
        ({"config": {"use_dora": True}}, "DoRA"),
        ({"config": {"bias": "all"}}, "biases"),
        ({"config": {"modules_to_save": ["lm_head"]}}, "whole modules"),
        ({"config": {"lora_alpha": "x"}}, "lora_alpha"),
        ({"weights": {Q: None}}, "one of its two matrices"),
        ({"weights": {Q: torch.zeros(4, 31)}}, "another size"),
        ({"weights": {Q: torch.full((4, 32), float("nan"))}}, "not finite"),
        ({"weights": {"base_model.model.model.embed_tokens.lora_embedding_A": torch.zeros(4, 320)}}, "not of a kind"),
        ({"weights": {Q.replace("layers.0", "layers.9"): torch.zeros(4, 32)}}, "two matrices"),
    ],
)
def test_adapters_that_would_be_computed_wrong_are_refused(zoo, adapters, tmp_path, changes, reason):
    folder = broken(adapters.make("llama", "first")[0], tmp_path / "x", **changes)
    with pytest.raises(AdapterError, match=f"^adapter 'mine': .*{reason}"):
        load_adapter("mine", folder, zoo.load("llama"))


def test_folders_that_are_no_adapters_are_refused(zoo, tmp_path):
    model = zoo.load("llama")
    with pytest.raises(AdapterError, match=r"adapter_config.json cannot be read"):
        load_adapter("mine", tmp_path, model)
    (tmp_path / CONFIG).write_text("{")
    with pytest.raises(AdapterError, match="not JSON"):
        load_adapter("mine", tmp_path, model)
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(AdapterError, match="cannot be read"):
        load_adapter("mine", tmp_path, model)
    (tmp_path / WEIGHTS).write_bytes(b"x" * 20)
    with pytest.raises(AdapterError, match="not safetensors"):
        load_adapter("mine", tmp_path, model)


def test_an_adapter_of_another_model_is_refused(zoo, adapters):
    with pytest.raises(AdapterError, match="no layer"):
        load_adapter("mine", adapters.make("gpt2", "first")[0], zoo.load("llama"))


def test_an_adapter_on_the_output_layer_is_refused(zoo, adapters, tmp_path):
    """It sees the rows that need logits only."""
    head = "base_model.model.lm_head.lora_{}.weight"
    weights = {head.format("A"): torch.zeros(4, 32), head.format("B"): torch.zeros(320, 4)}
    folder = broken(adapters.make("llama", "first")[0], tmp_path / "x", weights=weights)
    executor = zoo.executor("llama")
    with pytest.raises(UnsupportedModelError, match="lm_head"):
        executor.add_adapters([load_adapter("mine", folder, executor._model)])


# -- the engine --


async def test_the_engine_serves_them_by_name(zoo, adapters, ask, greedy_reference):
    folder, merged = adapters.make("llama", "first")
    settings = TorchSettings(
        str(zoo.folder("llama")), dtype="fp32", threads=1, kv_cache_gib=0.001, adapters={"mine": folder}
    )
    engine = TorchEngine(settings)
    await engine.start()
    try:
        assert engine.card.adapters == ("mine",)
        assert [engine.card.adapter(name) for name in ("mine", "llama", "x")] == ["mine", None, None]
        events = [event async for event in engine.generate(ask(PROMPT, 6, adapter="mine"))]
        tokens = [token for event in events if isinstance(event, Delta) for token in event.token_ids]
        assert tokens == greedy_reference(merged, PROMPT, 6)
        with pytest.raises(EngineRefused):
            await anext(engine.generate(ask(PROMPT, 6, adapter="x")))
    finally:
        await engine.stop()


async def test_a_name_is_never_given_twice(zoo, adapters):
    folder = adapters.make("llama", "first")[0]
    engine = TorchEngine(TorchSettings(str(zoo.folder("llama")), kv_cache_gib=0.001, adapters={"llama": folder}))
    with pytest.raises(AdapterError, match="the model has this name"):
        await engine.start()
