"""The core against transformers' own generate(), with media, through every path of the scheduler."""

from __future__ import annotations

import json

import pytest
import torch
from isogloss.engine.api import EngineFailure, Sampling
from isogloss.engine.torch.adapters import load_adapter
from isogloss.engine.torch.loading import load_model
from isogloss.engine.torch.scheduler import Scheduler
from isogloss.engine.torch.transformers_executor import PreparedModel
from safetensors.torch import save_file
from support.media_models import BUILDERS, film, picture, sound


def submit(driver, ask, placed, count, sampling=None, **more):
    return driver.submit(ask(placed.tokens, count, sampling, media=placed.input, **more))


SEEN = {
    "one picture": ["<|vision_start|>", picture(), "<|vision_end|>What is it?"],
    "two pictures": ["First ", picture(1), " then ", picture(2, 84, 56), " end"],
    "a film": ["Describe ", film(), " now"],
    "a film longer than wide": ["Describe ", film(4, frames=16, rate=4.0), " now"],
    "an odd number of frames": ["x", film(1, 7, 28, 56, 3.0), "y"],
    "all at once": ["x", film(1, 6, 28, 56, 0.7), picture(3), "yy", film(2, 2), "z"],
}
HEARD = {
    "one sound": ["<|audio_bos|>", sound(), "<|audio_eos|>What is it?"],
    "too long": ["a", sound(1, 5.0), "b"],
    "two sounds": ["a", sound(1, 0.1), sound(2, 2.0), "c"],
}


@pytest.mark.parametrize("case", SEEN)
def test_greedy_equals_generate_where_models_see(seeing, drive, ask, case):
    _check(seeing, drive, ask, SEEN[case])


@pytest.mark.parametrize("case", HEARD)
def test_greedy_equals_generate_where_models_hear(hears, drive, ask, case):
    _check(hears, drive, ask, HEARD[case])


def _check(model, drive, ask, parts):
    placed = model.place(*parts)
    driver = drive(model.executor(), budget=5)
    job = submit(driver, ask, placed, 12)
    driver.run()
    assert [driver.tokens[job][0]] == model.generate(placed, 12)


@pytest.fixture
def preemptions(monkeypatch):
    seen = []
    original = Scheduler._preempt
    monkeypatch.setattr(Scheduler, "_preempt", lambda *arguments: (seen.append(arguments[1]), original(*arguments)))
    return seen


MIXED = [
    ["only text, a little longer than the others are"],
    SEEN["one picture"],
    SEEN["a film longer than wide"],
    ["more text"],
    SEEN["all at once"],
    SEEN["two pictures"],
]


@pytest.mark.parametrize(("blocks", "tight"), [(300, False), (26, True)])
def test_a_ragged_batch_equals_single_runs(sees, drive, ask, preemptions, blocks, tight):
    """Texts, pictures and films join at different steps; chunks are small. With few blocks some start anew."""
    driver = drive(sees.executor(blocks=blocks), budget=7)
    prompts = [sees.place(*parts) for parts in MIXED]
    jobs = []
    for number, placed in enumerate(prompts):
        jobs.append(submit(driver, ask, placed, 16 + 3 * number))
        for _ in range(number % 3):
            driver.step()
    driver.run()
    for job, placed in zip(jobs, prompts, strict=True):
        assert [driver.tokens[job][0]] == sees.generate(placed, job.request.stopping.max_tokens)
    assert tight == any(choice.job.media is not None for choice in preemptions)
    assert driver.core.pool.usage == 0


def test_sound_in_a_batch_with_text_equals_single_runs(hears, drive, ask):
    driver = drive(hears.executor(), budget=9)
    prompts = [hears.place(*parts) for parts in ([*HEARD.values(), ["text alone"]])]
    jobs = [submit(driver, ask, placed, 10) for placed in prompts]
    driver.run()
    assert [[driver.tokens[job][0]] for job in jobs] == [hears.generate(placed, 10) for placed in prompts]


def count_encodings(executor, monkeypatch):
    seen = []
    encode = executor.encode
    monkeypatch.setattr(executor, "encode", lambda medium: (seen.append(medium), encode(medium))[1])
    return seen


def test_chunks_share_what_the_tower_made_and_it_is_forgotten_behind_them(sees, drive, ask, monkeypatch):
    executor = sees.executor()
    encoded = count_encodings(executor, monkeypatch)
    driver = drive(executor, budget=3)
    job = submit(driver, ask, sees.place(*SEEN["all at once"]), 4)
    kept = []
    while not driver.tokens[job][0]:
        driver.step()
        kept.append(len(job.media._encoded))
    assert len(encoded) == 3
    assert max(kept) == 1
    assert kept[-1] == 0


def test_equal_pictures_share_blocks_and_others_do_not(sees, drive, ask, monkeypatch):
    executor = sees.executor()
    encoded = count_encodings(executor, monkeypatch)
    driver = drive(executor)

    def run(*parts):
        job = submit(driver, ask, sees.place(*parts), 3)
        driver.run()
        return driver.cached(job), driver.tokens[job][0]

    ask_about = ["A long enough question, please look: ", picture(1), " what?"]
    cached, first = run(*ask_about)
    assert cached == 0
    again, second = run(ask_about[0], picture(1), ask_about[2])
    assert again > len(sees.loaded.tokenizer.encode(ask_about[0])) + 6 - 4
    assert first == second
    assert len(encoded) == 1
    before = len(sees.place(*ask_about).tokens) - len(sees.place(picture(1), ask_about[2]).tokens)
    other, third = run(ask_about[0], picture(2), ask_about[2])
    assert other <= before
    assert third != first
    # The same pixels in another shape, and the same tokens without a picture.
    assert run(ask_about[0], picture(1).__class__(picture(1).pixels.reshape(84, 56, 3)), ask_about[2])[0] <= before
    job = driver.submit(ask(sees.place(*ask_about).tokens, 3))
    driver.run()
    assert driver.cached(job) <= before


def test_a_picture_more_leaves_the_turns_before_it_in_the_cache(sees, drive, ask, monkeypatch):
    executor = sees.executor()
    encoded = count_encodings(executor, monkeypatch)
    driver = drive(executor)
    first = ["Please look: ", picture(1), " What is it? A dog. And this: "]
    submit(driver, ask, sees.place(*first), 3)
    driver.run()
    job = submit(driver, ask, sees.place(*first, picture(2), " what?"), 3)
    driver.run()
    assert driver.cached(job) > len(sees.place(*first).tokens) - 2 * 4
    assert len(encoded) == 2
    alone = drive(sees.executor())
    again = submit(alone, ask, sees.place(*first, picture(2), " what?"), 3)
    alone.run()
    assert driver.tokens[job] == alone.tokens[again]


def test_choices_of_a_request_branch_off_behind_the_media(sees, drive, ask):
    placed = sees.place(*SEEN["a film"])
    sampling = Sampling(temperature=1.0, seed=5)
    runs = []
    for blocks in (200, 16):
        driver = drive(sees.executor(blocks=blocks), budget=6)
        job = submit(driver, ask, placed, 8, sampling, n=3)
        driver.run()
        runs.append(dict(driver.tokens[job]))
    assert len({tuple(tokens) for tokens in runs[0].values()}) == 3
    assert runs[0] == runs[1]


def test_beams_equal_transformers(sees, drive, ask):
    placed = sees.place(*SEEN["two pictures"])
    driver = drive(sees.executor(), budget=6)
    job = submit(driver, ask, placed, 6, beams=3, n=3)
    driver.run()
    found = sees.generate(placed, 6, num_beams=3, num_return_sequences=3, early_stopping=False, length_penalty=1.0)
    assert [driver.tokens[job][index] for index in range(3)] == found


@pytest.mark.parametrize("case", ["one picture", "all at once"])
def test_prompt_scores_are_those_of_one_pass(sees, drive, ask, case):
    placed = sees.place(*SEEN[case])
    driver = drive(sees.executor(), budget=6)
    job = submit(driver, ask, placed, 2, prompt_logprobs=0)
    driver.run()
    scores = [score.logprob for score in driver.prompt_scores(job)[1:]]
    expected = sees.logits(placed).log_softmax(-1)[:-1].gather(1, torch.tensor(placed.tokens[1:])[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(scores), expected, atol=2e-4, rtol=2e-4)


def test_an_adapter_computes_as_if_merged(sees, drive, ask, tmp_path):
    name = "model.language_model.layers.0.mlp.up_proj"
    down, up = torch.randn(2, 64) * 0.3, torch.randn(96, 2) * 0.3
    save_file(
        {f"base_model.model.{name}.lora_A.weight": down, f"base_model.model.{name}.lora_B.weight": up},
        tmp_path / "adapter_model.safetensors",
    )
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 2}))
    placed = sees.place(*SEEN["one picture"])
    executor = sees.executor()
    executor.add_adapters([load_adapter("mine", tmp_path, executor._model)])
    driver = drive(executor, budget=6)
    plain, changed = (submit(driver, ask, placed, 10, adapter=adapter) for adapter in (None, "mine"))
    driver.run()
    weight = sees.stock.get_submodule(name).weight
    kept = weight.clone()
    try:
        weight += up @ down
        merged = sees.generate(placed, 10)
    finally:
        weight.copy_(kept)
    assert [driver.tokens[changed][0]] == merged
    assert [driver.tokens[plain][0]] == sees.generate(placed, 10) != merged


def test_an_abort_between_chunks_frees_everything(sees, drive, ask):
    driver = drive(sees.executor(), budget=4)
    job = submit(driver, ask, sees.place(*SEEN["a film"]), 4)
    driver.step()
    driver.step()
    assert driver.core.pool.usage > 0
    driver.core.abort(job)
    assert not driver.core.busy
    assert driver.core.pool.usage == 0


@pytest.mark.parametrize("fault", ["raises", "too few rows"])
def test_a_failing_tower_ends_its_own_request_only(sees, drive, ask, monkeypatch, fault):
    executor = sees.executor()
    broken = picture(9)
    encode = executor.encode

    def fail(medium):
        if medium is not broken:
            return encode(medium)
        if fault == "raises":
            raise RuntimeError("out of memory")
        return encode(medium)[1:]

    monkeypatch.setattr(executor, "encode", fail)
    driver = drive(executor, budget=40)
    good = [sees.place(*SEEN["one picture"]), sees.place("text alone")]
    jobs = [submit(driver, ask, placed, 8) for placed in (good[0], sees.place("see ", broken), good[1])]
    driver.run()
    assert isinstance(driver.failures.pop(jobs[1]), EngineFailure)
    assert not driver.failures
    assert [[driver.tokens[job][0]] for job in (jobs[0], jobs[2])] == [sees.generate(placed, 8) for placed in good]
    assert driver.core.pool.usage == 0


def test_a_step_of_nothing_but_a_failing_tower_is_no_failed_step(sees, drive, ask, monkeypatch):
    executor = sees.executor()
    monkeypatch.setattr(executor, "encode", lambda medium: medium.nothing)
    driver = drive(executor)
    job = submit(driver, ask, sees.place("see ", picture()), 8)
    driver.run()
    assert "media" in str(driver.failures[job])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", BUILDERS)
def test_narrow_types_come_near(models, name, dtype):
    """Towers get their numbers in the model's own type."""
    model = models[name]
    loaded = load_model(model.settings)
    executor = PreparedModel(loaded.model.to(dtype), loaded.context_length, loaded.family).executor(16, 4)
    medium = sound() if name == "qwen2_audio" else film()
    rows, exact = executor.encode(medium), model.loaded.family.encode(model.stock, medium)
    assert rows.dtype == dtype
    assert (rows.float() - exact).norm() < 0.05 * exact.norm()
