"""Sound for audio towers that take log-mel spectrograms of a fixed length."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import WhisperFeatureExtractor

from isogloss.engine.media import Audio, MediaRefused


@dataclass(frozen=True, slots=True)
class Hearing:
    """What a model wants sound to be like."""

    extractor: Any
    """transformers' feature extractor, which only computes."""

    @property
    def sample_rate(self) -> int:
        """Samples a second."""
        return int(self.extractor.sampling_rate)

    @property
    def longest(self) -> float:
        """Seconds that the model hears."""
        return float(self.extractor.n_samples / self.extractor.sampling_rate)

    @property
    def most_frames(self) -> int:
        """Frames of each spectrogram, silence included."""
        return int(self.extractor.nb_max_frames)

    def frames(self, audio: Audio) -> int:
        """Frames of the spectrogram that are not padding. Raises MediaRefused for sound at another sample rate."""
        if audio.sample_rate != self.sample_rate:
            raise MediaRefused(f"sound must have {self.sample_rate} samples a second")
        return min(-(-len(audio.samples) // int(self.extractor.hop_length)), self.most_frames)

    def spectrogram(self, audio: Audio) -> torch.Tensor:
        """[1, mel bins, most_frames], padded with silence; what is longer is cut off."""
        extracted = self.extractor(
            audio.samples, sampling_rate=audio.sample_rate, padding="max_length", return_tensors="pt"
        )
        features: torch.Tensor = extracted["input_features"]
        return features


def read_hearing(folder: Path) -> Hearing:
    """The settings of a model's folder."""
    return Hearing(WhisperFeatureExtractor.from_pretrained(folder, local_files_only=True))
