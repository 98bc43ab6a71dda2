"""Folders of models with media through the whole engine."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from isogloss.engine.api import Delta, EngineRefused, Guide
from isogloss.engine.media import MediaInput
from isogloss.engine.torch.engine import TorchEngine
from isogloss.engine.torch.executor import UnsupportedModelError
from isogloss.engine.torch.loading import load_model
from isogloss.engine.torch.multimodal.vision import read_vision
from isogloss.engine.torch.settings import TorchSettings
from support.media_models import film, picture, sound


async def tokens_of(engine, request):
    return [token async for event in engine.generate(request) if isinstance(event, Delta) for token in event.token_ids]


async def serve(model, check):
    engine = TorchEngine(replace(model.settings, kv_cache_gib=0.01))
    await engine.start()
    try:
        await check(engine)
    finally:
        await engine.stop()


async def test_a_conversation_about_a_picture_and_a_film(sees, ask):
    async def check(engine):
        assert {"image", "video"} <= engine.features
        assert "audio" not in engine.features
        media = [picture(), film()]
        content = [{"type": "image"}, {"type": "text", "text": "and"}, {"type": "video"}]
        prompt = engine.tokenizer.encode_chat([{"role": "user", "content": content}])
        placed = engine.processor.place(prompt, media)
        text = "<|im_start|>user\n<|vision_start|>", media[0], "<|vision_end|>and<|vision_start|>", media[1]
        assert placed.tokens == sees.place(*text, "<|vision_end|><|im_end|>\n<|im_start|>assistant\n").tokens
        request = ask(placed.tokens, 10, media=placed.input)
        assert [await tokens_of(engine, request)] == sees.generate(placed, 10)
        guided = replace(request, guide=Guide("regex", "[ab]{3}"))
        assert set(engine.tokenizer.decode(await tokens_of(engine, guided))) <= {"a", "b"}
        for changed in (replace(request, prompt=placed.tokens[1:]), replace(request, media=MediaInput(b""))):
            with pytest.raises(EngineRefused):
                await tokens_of(engine, changed)

    await serve(sees, check)


async def test_a_conversation_about_sound(hears, ask):
    async def check(engine):
        assert "audio" in engine.features
        content = [{"type": "audio"}, {"type": "text", "text": "What?"}]
        prompt = engine.tokenizer.encode_chat([{"role": "user", "content": content}])
        placed = engine.processor.place(prompt, [sound()])
        assert [await tokens_of(engine, ask(placed.tokens, 10, media=placed.input))] == hears.generate(placed, 10)

    await serve(hears, check)


async def test_a_model_of_texts_refuses_media(zoo, ask):
    engine = TorchEngine(TorchSettings(str(zoo.folder("llama")), dtype="fp32", threads=1, kv_cache_gib=0.001))
    await engine.start()
    try:
        assert engine.processor is None
        with pytest.raises(EngineRefused):
            await tokens_of(engine, ask([5, 6], 3, media=MediaInput([b"digest"])))
    finally:
        await engine.stop()


@pytest.fixture
def copy(tmp_path):
    def copied(model):
        shutil.copytree(model.folder, tmp_path / "model")
        return tmp_path / "model"

    return copied


def load(folder):
    return load_model(TorchSettings(str(folder), device="cpu", dtype="fp32", threads=1))


def test_a_template_written_the_old_way(sees, copy):
    folder = copy(sees)
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": "old way"}))
    assert load(folder).tokenizer.chat_template == "old way"


def test_models_that_hear_have_a_template_in_any_case(hears, copy):
    folder = copy(hears)
    (folder / "chat_template.jinja").unlink()
    loaded = load(folder)
    conversation = [{"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": "Hm?"}]}]
    assert "<|AUDIO|>" in loaded.tokenizer.apply_chat_template(conversation, tokenize=False)


def test_settings_of_one_file_for_all_parts(sees, copy):
    folder = copy(sees)
    parts = {"image_processor": "preprocessor_config.json", "video_processor": "video_preprocessor_config.json"}
    settings = {part: json.loads((folder / file).read_bytes()) for part, file in parts.items()}
    for file in parts.values():
        (folder / file).unlink()
    bounds = settings["image_processor"].pop("min_pixels"), settings["image_processor"].pop("max_pixels")
    settings["image_processor"]["size"] = {"shortest_edge": bounds[0], "longest_edge": bounds[1]}
    (folder / "processor_config.json").write_text(json.dumps(settings))
    assert read_vision(folder, 1024) == sees.loaded.family.vision


def test_a_processor_of_another_model_is_refused(sees, copy):
    folder = copy(sees)
    settings = json.loads((folder / "preprocessor_config.json").read_bytes())
    (folder / "preprocessor_config.json").write_text(json.dumps({**settings, "patch_size": 16}))
    with pytest.raises(UnsupportedModelError, match="patches"):
        load(folder)


def test_an_ear_of_another_length_is_refused(hears, copy):
    folder = copy(hears)
    settings = json.loads((folder / "preprocessor_config.json").read_bytes())
    (folder / "preprocessor_config.json").write_text(
        json.dumps({**settings, "chunk_length": 5, "n_samples": 80000, "nb_max_frames": 500})
    )
    with pytest.raises(UnsupportedModelError, match="length"):
        load(folder)
