"""Sound: in one channel, at the rate that is wanted, as much as is heard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import av
import numpy as np
import soundfile  # type: ignore[import-untyped]
from numpy.typing import NDArray

from isogloss.media.api import MediaError
from isogloss.media.decoding.protocol import Bounds, SoundFacts, SoundWish

_FORMATS = {"WAV": "wav", "WAVEX": "wav", "FLAC": "flac", "MP3": "mp3"}
_SUBTYPES = frozenset("PCM_S8 PCM_U8 PCM_16 PCM_24 PCM_32 FLOAT DOUBLE ULAW ALAW MPEG_LAYER_III".split())
_RATES = range(1_000, 400_000)
_CHANNELS = 32
_BLOCK = 2**16
"""Samples of each channel that are decoded at a time."""

_UNKNOWN = 2**62
"""More samples than this are libsndfile's word for a length that stands nowhere."""


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # it comes without types
    """Read from front to back, since libsndfile cannot seek where the length is unknown."""

    def seekable(self) -> bool:
        return False


class Sound:
    """A file of sound whose header has been read."""

    def __init__(self, file: BinaryIO, format_: str, bounds: Bounds) -> None:
        self._sound = _Forward(file)
        # libsndfile looks for itself; it must have seen what we saw.
        if _FORMATS.get(self._sound.format) != format_ or self._sound.subtype not in _SUBTYPES:
            raise MediaError("wrong_format")
        if self._sound.samplerate not in _RATES or self._sound.channels > _CHANNELS or self._sound.frames < 1:
            raise MediaError("broken")
        self._has_length = self._sound.frames < _UNKNOWN
        # The length of MP3 may be guessed from its first frames.
        self._is_exact = self._has_length and format_ != "mp3"
        self._longest = bounds.audio_seconds
        if self.facts.seconds > self._longest:
            raise MediaError("too_long")

    @property
    def facts(self) -> SoundFacts:
        """How long it is, or may be at most."""
        return SoundFacts(self._sound.frames / self._sound.samplerate if self._has_length else self._longest)

    def take(self, wish: SoundWish) -> NDArray[np.float32]:
        """Samples from -1 to 1, shape (samples,)."""
        longest = int(wish.seconds * wish.sample_rate)
        blocks = list(self._resampled(wish))
        samples = np.concatenate(blocks) if blocks else np.empty(0, np.float32)
        if not samples.size:
            raise MediaError("broken")
        return np.clip(np.nan_to_num(samples[:longest]), -1, 1)

    def _resampled(self, wish: SoundWish) -> Iterator[NDArray[np.float32]]:
        # libswresample: a polyphase filter, exact in time, within 3e-5 of a sine up to 40 % of the lower rate.
        resampler = av.AudioResampler(format="flt", layout="mono", rate=wish.sample_rate)
        for block in self._mono(wish.seconds):
            frame = av.AudioFrame.from_ndarray(block[None], format="flt", layout="mono")
            frame.sample_rate = self._sound.samplerate
            yield from (part.to_ndarray()[0] for part in resampler.resample(frame))
        yield from (part.to_ndarray()[0] for part in resampler.resample(None))

    def _mono(self, seconds: float) -> Iterator[NDArray[np.float32]]:
        left = int(min(self.facts.seconds, seconds + 1) * self._sound.samplerate)
        while left > 0:
            block = self._sound.read(min(left, _BLOCK), dtype="float32", always_2d=True)
            if not len(block):
                break
            left -= len(block)
            yield block.mean(axis=1, dtype=np.float32)
        if left > 0 and self._is_exact:
            raise MediaError("broken")
