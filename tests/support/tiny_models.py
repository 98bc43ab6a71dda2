"""Folders of tiny models with random weights, made of the real configuration classes: for plumbing, not for sense.

They load like the models that people download: weights, tokenizer, chat template and the settings of the processors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CONTEXT = 1024
LONGEST_AUDIO_S = 4
SAMPLE_RATE = 16000

TEXT = (
    "An isogloss is the line on a map where one dialect ends and the next begins. "
    "What is in the picture? What do you hear in the recording? Describe the video: système, Straße, 你好. 0123456789"
)
CHAT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
AUDIO = ("<|audio_bos|>", "<|audio_eos|>", "<|AUDIO|>")

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif part.type == 'audio' %}Audio: <|audio_bos|><|AUDIO|><|audio_eos|>\n"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

LANGUAGE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
IMAGES: dict[str, Any] = {
    "min_pixels": 4 * 28 * 28,
    "max_pixels": 16 * 28 * 28,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
VIDEOS: dict[str, Any] = {**IMAGES, "max_pixels": 8 * 28 * 28, "min_frames": 4, "max_frames": 8}


def tiny_qwen2_vl(folder: Path) -> Path:
    """Takes images (4 to 16 tokens each) and films (4 to 8 frames). Quick to make: no reason to keep it."""
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration  # noqa: PLC0415 - slow

    vision = {"depth": 2, "embed_dim": 32, "num_heads": 2, "hidden_size": 64, "mlp_ratio": 2}
    return _vision_model(folder, Qwen2VLConfig, Qwen2VLForConditionalGeneration, vision)


def tiny_qwen2_5_vl(folder: Path) -> Path:
    """The same of the next generation, whose positions depend on a film's speed."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration  # noqa: PLC0415

    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 64,
        "window_size": 56,
        "fullatt_block_indexes": [1],
        "tokens_per_second": 2,
    }
    return _vision_model(folder, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, vision)


def _vision_model(folder: Path, config_class: Any, model_class: Any, vision: dict[str, Any]) -> Path:
    tokenizer = build_tokenizer(VISION)
    ids = {name.strip("<|>"): tokenizer.convert_tokens_to_ids(name) for name in VISION}
    config = config_class(
        text_config={**LANGUAGE, "vocab_size": len(tokenizer), "rope_parameters": ROPE},
        vision_config={"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, **vision},
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
    )
    _save(model_class, config, tokenizer, folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(IMAGES))
    (folder / "video_preprocessor_config.json").write_text(json.dumps(VIDEOS))
    return folder


def tiny_qwen2_audio(folder: Path) -> Path:
    """Hears 4 seconds at 16 kHz, 25 tokens a second."""
    from transformers import (  # noqa: PLC0415
        Qwen2AudioConfig,
        Qwen2AudioForConditionalGeneration,
        WhisperFeatureExtractor,
    )

    tokenizer = build_tokenizer(AUDIO)
    audio = {
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "num_mel_bins": 16,
        "max_source_positions": LONGEST_AUDIO_S * 50,
    }
    config = Qwen2AudioConfig(
        audio_config=audio,
        text_config={**LANGUAGE, "model_type": "qwen2", "vocab_size": len(tokenizer)},
        audio_token_index=tokenizer.convert_tokens_to_ids("<|AUDIO|>"),
    )
    _save(Qwen2AudioForConditionalGeneration, config, tokenizer, folder)
    WhisperFeatureExtractor(feature_size=16, chunk_length=LONGEST_AUDIO_S).save_pretrained(folder)
    return folder


def build_tokenizer(special: Sequence[str]) -> Any:
    """A small byte-level tokenizer with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[*CHAT, *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(special),
    )
    fast.chat_template = TEMPLATE
    return fast


def _save(model_class: Any, config: Any, tokenizer: Any, folder: Path) -> None:
    import torch  # noqa: PLC0415

    torch.manual_seed(11)
    model = model_class(config).eval()
    # Larger weights than a training starts from: otherwise attention and towers hardly matter.
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=0.6 if "embed_tokens" in name else 0.25)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
