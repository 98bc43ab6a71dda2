"""Qwen2-Audio: sound in place of tokens, at their plain positions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2AudioProcessor
from transformers.masking_utils import create_bidirectional_mask

from isogloss.engine.media import Audio, Media, MediaKind, MediaRefused
from isogloss.engine.torch.executor import UnsupportedModelError
from isogloss.engine.torch.multimodal.folder import has_chat_template_file, read_chat_template
from isogloss.engine.torch.multimodal.hearing import Hearing, read_hearing
from isogloss.engine.torch.multimodal.placed import PlacedMedium, RotaryPositions


class Qwen2Audio:
    """Implements `Family`."""

    vision = None

    def __init__(self, config: Any, folder: Path, context_length: int) -> None:
        """Raises UnsupportedModelError if the folder's processor hears another length than the model."""
        self.hearing: Hearing = read_hearing(folder)
        self.marks: dict[int, MediaKind] = {config.audio_token_id: "audio"}
        self.chat_template = _chat_template(folder)
        if self.hearing.most_frames != 2 * config.audio_config.max_source_positions:
            raise UnsupportedModelError("the processor hears another length than the model")

    def count(self, medium: Media) -> int:
        """One token for four frames. Raises MediaRefused for sound of no use."""
        count = _halves(self.hearing.frames(_heard(medium))) // 2
        if count < 1:
            raise MediaRefused("the sound is too short")
        return count

    def rotary(self, length: int, placed: Sequence[PlacedMedium]) -> RotaryPositions | None:
        """Positions are indices."""
        return None

    @torch.inference_mode()
    def encode(self, model: Any, medium: Media) -> torch.Tensor:
        """Run the audio tower, which must not see the padding, and leave out what it makes of that."""
        heard = _heard(medium)
        tower, project = model.model.audio_tower, model.model.multi_modal_projector
        places = torch.arange(self.hearing.most_frames // 2, device=model.device)
        mask = create_bidirectional_mask(
            config=tower.config,
            inputs_embeds=torch.zeros((1, len(places), 1), dtype=model.dtype, device=model.device),
            attention_mask=(places < _halves(self.hearing.frames(heard))).long()[None],
        )
        hidden = tower(self.hearing.spectrogram(heard).to(model.device), attention_mask=mask).last_hidden_state
        rows: torch.Tensor = project(hidden)[0, : self.count(heard)]
        return rows


def _halves(frames: int) -> int:
    """Frames that are left when every second one goes."""
    return (frames + 1) // 2


def _heard(medium: Media) -> Audio:
    if not isinstance(medium, Audio):
        raise MediaRefused("the model does not see")
    return medium


def _chat_template(folder: Path) -> str | None:
    if has_chat_template_file(folder):
        return None
    # Published folders have a template of their tokenizer's that knows no sound; transformers brings one that does.
    return read_chat_template(folder) or Qwen2AudioProcessor.default_chat_template.fget(None)
