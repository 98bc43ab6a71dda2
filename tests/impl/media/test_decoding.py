"""From files to pixels and samples, and what becomes of files that are broken or too much."""

from __future__ import annotations

import base64
import io
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import av
import numpy as np
import pytest
from isogloss.engine.media import Audio, Image, MediaRefused, Video, VideoPlan
from isogloss.media.api import Inline, MediaError, MediaRules
from isogloss.media.loader import MediaLoader
from PIL import Image as Pillow
from support.media_files import PlainProcessor, film, picture, sound

Make = Callable[..., MediaLoader]
PIXELS = np.arange(6 * 4 * 3, dtype=np.uint8).reshape(4, 6, 3) * 3


async def load(loader: MediaLoader, data: bytes, rules: MediaRules, processor: Any = None) -> Any:
    source = Inline(base64.b64encode(data).decode(), "any")
    return await loader.load(source, rules, processor or PlainProcessor())


async def refusal(loader: MediaLoader, data: bytes, rules: MediaRules) -> str:
    with pytest.raises(MediaError) as caught:
        await load(loader, data, rules)
    return caught.value.reason


def saved(image: Pillow.Image, format_: str = "png", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format_, **options)
    return file.getvalue()


# -- pictures --


async def test_pictures_of_every_mode(decoder: MediaLoader, image: MediaRules) -> None:
    palette = Pillow.new("P", (2, 2))
    palette.putpalette([1, 2, 3, 4, 5, 6])
    for picture_, pixel in [
        (Pillow.fromarray(PIXELS), [0, 3, 6]),
        (palette, [1, 2, 3]),
        (Pillow.new("L", (2, 2), 9), [9, 9, 9]),
        (Pillow.new("1", (2, 2), 1), [255, 255, 255]),
        (Pillow.new("RGBA", (2, 2), (255, 0, 0, 0)), [255, 255, 255]),
        (Pillow.new("RGBA", (2, 2), (255, 0, 0, 128)), [255, 127, 127]),
        (Pillow.new("LA", (2, 2), (0, 0)), [255, 255, 255]),
        (Pillow.fromarray(np.full((2, 2), 40_000, np.uint16)), [156, 156, 156]),
    ]:
        media = await load(decoder, saved(picture_), image)
        assert media.pixels[0, 0].tolist() == pixel, picture_.mode
        assert (media.pixels.dtype, media.pixels.shape[2]) == (np.uint8, 3)
    cmyk = await load(decoder, saved(Pillow.new("CMYK", (8, 8), (0, 255, 255, 0)), "jpeg"), image)
    assert cmyk.pixels[0, 0].tolist() == [255, 0, 0]


async def test_the_processor_says_how_large(decoder: MediaLoader, image: MediaRules) -> None:
    class Half(PlainProcessor):
        def image_size(self, height: int, width: int) -> tuple[int, int]:
            return height // 2, width // 2

    original = Pillow.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8))
    media = await load(decoder, saved(original), image, Half())
    expected = np.asarray(original.resize((30, 20), Pillow.Resampling.BICUBIC))
    assert (media.pixels == expected).all()
    media.pixels[0] = 0  # it is the caller's own


@pytest.mark.parametrize("orientation", range(1, 9))
async def test_pictures_are_upright(decoder: MediaLoader, image: MediaRules, orientation: int) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    media = await load(decoder, saved(Pillow.fromarray(PIXELS), exif=exif), image)
    turned = {1: PIXELS, 2: PIXELS[:, ::-1], 3: PIXELS[::-1, ::-1], 4: PIXELS[::-1], 5: PIXELS.swapaxes(0, 1),
              6: np.rot90(PIXELS, -1), 7: PIXELS[::-1, ::-1].swapaxes(0, 1), 8: np.rot90(PIXELS)}  # fmt: skip
    assert np.array_equal(media.pixels, turned[orientation])


async def test_pixels_that_do_not_unpack_are_broken(decoder: MediaLoader, image: MediaRules) -> None:
    whole = picture("png")
    start = whole.index(b"IDAT") + 6
    assert await refusal(decoder, whole[:start] + b"\xff\xff" + whole[start + 2 :], image) == "broken"


async def test_a_broken_orientation_is_none(decoder: MediaLoader, image: MediaRules) -> None:
    media = await load(decoder, saved(Pillow.fromarray(PIXELS), exif=b"Exif\0\0MM\0*\0\0\xff\xff"), image)
    assert np.array_equal(media.pixels, PIXELS)


async def test_moving_pictures_stand_still_at_the_first(decoder: MediaLoader, image: MediaRules) -> None:
    frames = [Pillow.new("RGB", (5, 5), colour) for colour in ("red", "blue")]
    media = await load(decoder, saved(frames[0], save_all=True, append_images=frames[1:]), image)
    assert media.pixels[0, 0].tolist() == [255, 0, 0]


# -- films --


@pytest.mark.parametrize("format_", ["mp4", "avi", "wmv"])
async def test_frames_that_are_planned_are_taken(decoder: MediaLoader, video: MediaRules, format_: str) -> None:
    asked: list[tuple[object, ...]] = []

    class Few(PlainProcessor):
        def video_plan(self, frames: int, frames_per_second: float, height: int, width: int) -> VideoPlan:
            asked.append((frames, frames_per_second, height, width))
            return VideoPlan((0, 7, 19), 24, 32, 1.5)

    media = await load(decoder, film(format_), video, Few())
    assert isinstance(media, Video)
    assert asked == [(20, 10.0, 48, 64)]
    assert (media.frames.shape, media.frames_per_second) == ((3, 24, 32, 3), 1.5)
    assert np.abs(media.frames.mean(axis=(1, 2, 3)) - [0, 84, 228]).max() < 6


async def test_films_as_telephones_make_them(decoder: MediaLoader, video: MediaRules) -> None:
    media = await load(decoder, film("mp4", codec="libx264"), video)  # with frames out of order
    assert np.abs(media.frames.mean(axis=(1, 2, 3)) - [0, 120, 228]).max() < 6


async def test_films_that_were_taken_upright_are_upright(decoder: MediaLoader, video: MediaRules) -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        pixels = np.zeros((48, 64, 3), np.uint8)
        pixels[:, :32] = 255  # the left half is white
        container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels)))
        container.mux(stream.encode(None))
    data = bytearray(file.getvalue())
    matrix = data.index(b"tkhd") + 44
    # A quarter to the right, as telephones write it: 16.16 fixed point, and 2.30 in the last column.
    data[matrix : matrix + 36] = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 48 << 16, 0, 1 << 30)
    media = await load(decoder, bytes(data), video)
    assert media.frames.shape[1:3] == (64, 48)
    assert media.frames[0, :28].min() > 200
    assert media.frames[0, 36:].max() < 50


# -- sound --


class Unseekable:
    """A file that is written once, from front to back."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> int:
        self.data += bytes(data)
        return len(data)


async def test_flac_whose_writer_did_not_know_its_length(decoder: MediaLoader, audio: MediaRules) -> None:
    file = Unseekable()
    with av.open(file, "w", format="flac") as container:
        stream: Any = container.add_stream("flac", rate=16_000, layout="mono", format="s16")
        frame = av.AudioFrame.from_ndarray(np.full((1, 12_345), 2**14, np.int16), format="s16", layout="mono")
        frame.sample_rate = 16_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    media = await load(decoder, file.data, audio)
    assert media.samples.tolist() == [0.5] * 12_345


@pytest.mark.parametrize("format_", ["wav", "flac", "mp3"])
@pytest.mark.parametrize("rate", [8000, 16_000, 44_100])
async def test_sound_is_one_channel_at_the_rate_that_is_wanted(
    decoder: MediaLoader, audio: MediaRules, format_: str, rate: int
) -> None:
    media = await load(decoder, sound(format_, 1.0, rate), audio)
    assert isinstance(media, Audio)
    assert (media.sample_rate, media.samples.dtype) == (16_000, np.float32)
    assert abs(len(media.samples) - 16_000) <= (1 if format_ != "mp3" else 500)
    middle = slice(2000, 14_000)
    tone = np.sin(2 * np.pi * 440 * np.arange(len(media.samples)) / 16_000) / 4
    assert np.abs(media.samples - tone)[middle].max() < (1e-3 if format_ != "mp3" else 5e-2)


async def test_sound_is_cut_where_nobody_listens(decoder: MediaLoader, audio: MediaRules) -> None:
    media = await load(decoder, sound("wav", 5.0, 8000), audio)
    assert len(media.samples) == 2 * 16_000


async def test_samples_beyond_the_scale(decoder: MediaLoader, audio: MediaRules) -> None:
    data = bytearray(sound("wav", 0.1, 16_000, subtype="FLOAT"))
    data[-8:] = struct.pack("<2f", 5.0, 5.0)
    data[-16:-8] = struct.pack("<2f", float("nan"), 0)
    media = await load(decoder, bytes(data), audio)
    assert media.samples[-2:].tolist() == [0, 1]


# -- broken --

FILES = {
    **{name: saved(Pillow.effect_noise((64, 64), 50), name) for name in ("jpeg", "png")},
    **{name: film(name) for name in ("mp4", "avi", "wmv")},
    **{name: sound(name) for name in ("wav", "flac", "mp3")},
}
KINDS = {**dict.fromkeys(("jpeg", "png"), "image"), **dict.fromkeys(("mp4", "avi", "wmv"), "video")}


@pytest.mark.parametrize("format_", FILES)
async def test_what_is_cut_off_is_broken(decoder: MediaLoader, request: pytest.FixtureRequest, format_: str) -> None:
    data = FILES[format_]
    rules = request.getfixturevalue(KINDS.get(format_, "audio"))
    await load(decoder, data, rules)
    # MP3 is frames and no more: it can be cut anywhere.
    for length in (20,) if format_ == "mp3" else (20, len(data) // 3, len(data) // 2, len(data) * 9 // 10):
        assert await refusal(decoder, data[:length], rules) == "broken"


@pytest.mark.parametrize("format_", FILES)
async def test_nonsense_ends_in_a_refusal_or_a_medium(
    decoder: MediaLoader, request: pytest.FixtureRequest, format_: str
) -> None:
    rules = request.getfixturevalue(KINDS.get(format_, "audio"))
    chance = random.Random(format_)
    for _ in range(25):
        data = bytearray(FILES[format_])
        for _ in range(chance.choice([1, 3, 10, 100])):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        try:
            media = await load(decoder, bytes(data), rules)
        except MediaError:
            continue
        assert isinstance(media, Image | Video | Audio)


async def test_other_media_in_a_container(decoder: MediaLoader, video: MediaRules, audio: MediaRules) -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert await refusal(decoder, file.getvalue(), video) == "wrong_format"
    compressed = sound("wav", subtype="IMA_ADPCM")
    assert await refusal(decoder, compressed, audio) == "wrong_format"


# -- too much --


def png_header(width: int, height: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


async def test_pixels_are_counted_before_any_is_decoded(
    make_loader: Make, image: MediaRules, video: MediaRules
) -> None:
    loader = make_loader(pixels=3000)
    assert await refusal(loader, png_header(2**31 - 1, 2**31 - 1), image) == "too_many_pixels"
    assert await refusal(loader, png_header(14_000, 14_000), image) == "too_many_pixels"
    assert await refusal(loader, film(size=(64, 48)), video) == "too_many_pixels"
    await load(loader, picture(size=(60, 50)), image)
    assert await refusal(loader, picture(size=(60, 51)), image) == "too_many_pixels"


async def test_length_is_bounded(make_loader: Make, video: MediaRules, audio: MediaRules) -> None:
    loader = make_loader(video_seconds=1.9, audio_seconds=0.9)
    for format_ in ("mp4", "avi", "wmv"):
        assert await refusal(loader, film(format_), video) == "too_long"
    for format_ in ("wav", "flac", "mp3"):
        assert await refusal(loader, sound(format_), audio) == "too_long"
    assert await refusal(make_loader(video_frames=19), film(), video) == "too_long"


async def test_work_and_memory_are_bounded(make_loader: Make, image: MediaRules) -> None:
    large = saved(Pillow.new("RGB", (6000, 6000)))
    assert await refusal(make_loader(decode_memory=50 * 2**20), large, image) == "too_complex"
    assert await refusal(make_loader(decoded_bytes=60 * 40 * 3 - 1), picture(), image) == "too_complex"
    await load(make_loader(decoded_bytes=60 * 40 * 3), picture(), image)


async def test_who_refuses_may_be_the_processor(make_loader: Make, image: MediaRules) -> None:
    class Choosy(PlainProcessor):
        def image_size(self, height: int, width: int) -> tuple[int, int]:
            raise MediaRefused("no")

    loader = make_loader(workers=1)
    for _ in range(2):
        with pytest.raises(MediaRefused):
            await load(loader, picture(), image, Choosy())
    await load(loader, picture(), image)
    assert len(loader._decoders._processes) == 1
