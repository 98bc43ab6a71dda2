"""Tiny models that see or hear, loaded as the engine does it, and what transformers makes of the same media."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from isogloss.engine.media import Audio, Image, Media, PlacedMedia, Video
from isogloss.engine.torch.loading import load_model
from isogloss.engine.torch.multimodal.processor import Processor
from isogloss.engine.torch.settings import TorchSettings
from isogloss.engine.torch.transformers_executor import PreparedModel, TransformersExecutor

from support.tiny_models import SAMPLE_RATE, tiny_qwen2_5_vl, tiny_qwen2_audio, tiny_qwen2_vl

BUILDERS = {"qwen2_vl": tiny_qwen2_vl, "qwen2_5_vl": tiny_qwen2_5_vl, "qwen2_audio": tiny_qwen2_audio}


def picture(seed: int = 0, height: int = 56, width: int = 84) -> Image:
    return Image(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def film(seed: int = 0, frames: int = 8, height: int = 56, width: int = 56, rate: float = 2.0) -> Video:
    return Video(np.random.default_rng(seed).integers(0, 256, (frames, height, width, 3), np.uint8), rate)


def sound(seed: int = 0, seconds: float = 1.3) -> Audio:
    noise = np.random.default_rng(seed).normal(0, 0.2, round(seconds * SAMPLE_RATE))
    return Audio(noise.astype(np.float32), SAMPLE_RATE)


class Model:
    """One tiny model. `loaded` is for transformers alone; executors load it anew."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.settings = TorchSettings(str(folder), device="cpu", dtype="fp32", threads=1)
        self.loaded = load_model(self.settings)
        self.processor = Processor(self.loaded.family)

    @property
    def stock(self) -> Any:
        return self.loaded.model

    def executor(self, *, blocks: int = 256, block_size: int = 4) -> TransformersExecutor:
        loaded = load_model(self.settings)
        return PreparedModel(loaded.model, loaded.context_length, loaded.family).executor(blocks, block_size)

    def place(self, *parts: str | Media) -> PlacedMedia:
        """A prompt of texts and media in turn."""
        marks = {Image: "<|image_pad|>", Video: "<|video_pad|>", Audio: "<|AUDIO|>"}
        text = "".join(part if isinstance(part, str) else marks[type(part)] for part in parts)
        return self.processor.place(self.loaded.tokenizer.encode(text), [p for p in parts if not isinstance(p, str)])

    def inputs(self, placed: PlacedMedia) -> dict[str, Any]:
        """Arguments for transformers, of its own processors where these need no torchvision."""
        media = [one.medium for one in placed.input.placed]
        ids = torch.tensor([placed.tokens])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if not media:
            return inputs
        if self.name == "qwen2_audio":
            return {**inputs, **self._heard(media)}
        config = self.stock.config
        kinds = (ids == config.image_token_id).int() + 2 * (ids == config.video_token_id).int()
        return {**inputs, "mm_token_type_ids": kinds, **self._pictures(media), **self._films(media)}

    def _pictures(self, media: Sequence[Media]) -> dict[str, Any]:
        from transformers import Qwen2VLImageProcessorPil  # noqa: PLC0415

        images = [medium.pixels for medium in media if isinstance(medium, Image)]
        if not images:
            return {}
        processor = Qwen2VLImageProcessorPil.from_pretrained(self.folder)
        return dict(processor(images=images, do_resize=False, return_tensors="pt"))

    def _films(self, media: Sequence[Media]) -> dict[str, Any]:
        films = [medium for medium in media if isinstance(medium, Video)]
        if not films:
            return {}
        inputs = {
            "pixel_values_videos": torch.cat([reference_patches(medium.frames) for medium in films]),
            "video_grid_thw": torch.tensor([reference_grid(medium.frames) for medium in films]),
        }
        if self.name == "qwen2_5_vl":
            inputs["second_per_grid_ts"] = [2 / medium.frames_per_second for medium in films]
        return inputs

    def _heard(self, media: Sequence[Media]) -> dict[str, Any]:
        from transformers import WhisperFeatureExtractor  # noqa: PLC0415

        extracted = WhisperFeatureExtractor.from_pretrained(self.folder)(
            [medium.samples for medium in media],
            sampling_rate=SAMPLE_RATE,
            return_attention_mask=True,
            padding="max_length",
            return_tensors="pt",
        )
        return {"input_features": extracted.input_features, "feature_attention_mask": extracted.attention_mask}

    @torch.inference_mode()
    def generate(self, placed: PlacedMedia, count: int, **options: Any) -> list[list[int]]:
        """What transformers itself generates without an end, greedily if the options say nothing else."""
        self.stock.generation_config.eos_token_id = None
        out = self.stock.generate(
            **self.inputs(placed), max_new_tokens=count, do_sample=False, pad_token_id=0, **options
        )
        return out[:, len(placed.tokens) :].tolist()

    @torch.inference_mode()
    def logits(self, placed: PlacedMedia) -> torch.Tensor:
        """[tokens, vocabulary]."""
        return self.stock(**self.inputs(placed)).logits[0]


def reference_grid(frames: np.ndarray) -> tuple[int, int, int]:
    return (len(frames) + 1) // 2, frames.shape[1] // 14, frames.shape[2] // 14


def reference_patches(frames: np.ndarray) -> torch.Tensor:
    """Patches of a film, one number after the other: slow, and plain to read."""
    mean, std = np.array([0.48145466, 0.4578275, 0.40821073]), np.array([0.26862954, 0.26130258, 0.27577711])
    pixels = (frames / 255 - mean) / std
    if len(pixels) % 2:
        pixels = np.concatenate((pixels, pixels[-1:]))
    times, rows, columns = reference_grid(frames)
    patches = [
        pixels[2 * time : 2 * time + 2, 14 * row : 14 * row + 14, 14 * column : 14 * column + 14].transpose(3, 0, 1, 2)
        for time in range(times)
        for top in range(0, rows, 2)
        for left in range(0, columns, 2)
        for row in (top, top + 1)
        for column in (left, left + 1)
    ]
    return torch.tensor(np.stack([patch.ravel() for patch in patches]), dtype=torch.float32)
