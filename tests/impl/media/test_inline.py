"""Media written out in a request, and what their bytes say they are."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss.engine.media import Audio, Image
from isogloss.media.api import Inline, MediaBudget, MediaError, MediaRules, Reference
from isogloss.media.inline import decoded
from isogloss.media.loader import MediaLoader
from isogloss.media.sniffing import sniff
from isogloss.media.spool import Intake
from support.media_files import PlainProcessor, film, picture, sound


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


PNG, JPEG = b64(picture("png")), b64(picture("jpeg"))


@pytest.mark.parametrize(
    "text",
    [
        f"data:image/png;base64,{PNG}",
        f"DATA:IMAGE/PNG;BASE64,{PNG}",
        f"data:image/png;base64,\n{PNG[:40]}\r\n{PNG[40:]}\n",
        f"data:image/jpeg;base64,{PNG}",
        f"data:image/png;base64,{JPEG}",
        f"data:image/png;base64,{PNG.rstrip('=')}",
        JPEG,
        f"{JPEG[:76]}\n{JPEG[76:]}",
    ],
)
async def test_spellings(decoder: MediaLoader, image: MediaRules, text: str) -> None:
    media = await decoder.load(Reference(text), image, PlainProcessor())
    assert isinstance(media, Image)
    assert media.pixels.shape == (40, 60, 3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"data:image/gif;base64,{PNG}", "wrong_format"),
        (f"data:image/jpg;base64,{PNG}", "wrong_format"),
        (f"data:audio/mpeg;base64,{PNG}", "wrong_format"),
        (f"data:;base64,{PNG}", "wrong_format"),
        ("data:image/png;base64,", "wrong_format"),
        (f"data:image/png;base64,{b64(film())}", "wrong_format"),
        ("data:image/png;base64," + b64(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "wrong_format"),
        ("data:image/png;base64," + b64(b"GIF89a" + bytes(20)), "wrong_format"),
        (f"data:image/png,{PNG}", "broken"),
        (f"data:image/png;charset=x;base64,{PNG}", "broken"),
        (f"data:{'x' * 300};base64,{PNG}", "broken"),
        ("data:image/png;base64", "broken"),
        ("data:image/png;base64,!!!not-base64!!!", "broken"),
        (f"data:image/png;base64,{PNG}=", "broken"),
        (f"data:image/png;base64,{PNG[:-3]}", "broken"),
        (f"data:image/png;base64,{PNG[:8]}ä", "broken"),
        (f"{JPEG[:-5]}$", "broken"),
        (f"data:image/png;base64,{PNG[: len(PNG) // 8 * 4]}", "broken"),
        (PNG, "not_found"),  # not one of the formats that come bare: a path
    ],
)
async def test_refusals(decoder: MediaLoader, image: MediaRules, text: str, reason: str) -> None:
    with pytest.raises(MediaError) as caught:
        await decoder.load(Reference(text), image, PlainProcessor())
    assert caught.value.reason == reason


async def test_inline_sound_is_what_its_bytes_are(decoder: MediaLoader, audio: MediaRules) -> None:
    for declared in ("wav", "mp3"):
        media = await decoder.load(Inline(b64(sound("wav")), declared), audio, PlainProcessor())
        assert isinstance(media, Audio)
    with pytest.raises(MediaError, match="wrong_format"):
        await decoder.load(Inline(PNG, "wav"), audio, PlainProcessor())
    with pytest.raises(MediaError, match="wrong_format"):
        await decoder.load(Inline("UklGRg==", "wav"), audio, PlainProcessor())


async def test_sizes_are_of_the_bytes_not_of_the_text(decoder: MediaLoader, image: MediaRules) -> None:
    size = len(picture("png"))
    text = Reference(f"data:image/png;base64,{PNG}")
    exact = MediaRules("image", size, image.formats)
    await decoder.load(text, exact, PlainProcessor(), MediaBudget(size))
    with pytest.raises(MediaError, match="too_large"):
        await decoder.load(text, MediaRules("image", size - 1, image.formats), PlainProcessor())
    with pytest.raises(MediaError, match="too_large"):
        await decoder.load(text, exact, PlainProcessor(), MediaBudget(size - 1))


def test_a_budget_is_for_all_media_together() -> None:
    budget = MediaBudget(10)
    budget.take(6)
    with pytest.raises(MediaError, match="too_large"):
        budget.take(5)


@given(st.binary(max_size=100), st.lists(st.integers(0, 200), max_size=5), st.sampled_from("\n\r\t "))
def test_blanks_in_base64_change_nothing(data: bytes, places: list[int], blank: str) -> None:
    text = b64(data)
    for place in places:
        text = text[:place] + blank + text[place:]
    assert decoded(text, Intake(len(data))) == data
    if data:
        with pytest.raises(MediaError, match="too_large"):
            decoded(text, Intake(len(data) - 1))


@given(st.binary(max_size=100))
def test_padding_may_be_left_out(data: bytes) -> None:
    assert decoded(b64(data).rstrip("="), Intake(len(data))) == data


@pytest.mark.parametrize("text", ["Q", "QQ=", "=QQ", "QQ=Q", "QUJDR"])
def test_half_a_padding_and_half_a_byte_are_broken(text: str) -> None:
    with pytest.raises(MediaError, match="broken"):
        decoded(text, Intake(100))


@pytest.mark.parametrize("name", ["jpeg", "png"])
def test_pictures_are_told_by_their_bytes(name: str) -> None:
    assert sniff(picture(name)[:16]) == name


def test_what_is_told_apart() -> None:
    for name in ("mp4", "avi", "wmv"):
        assert sniff(film(name)[:16]) == name
    for name in ("mp3", "wav", "flac"):
        assert sniff(sound(name)[:16]) == name
    assert sniff(b"ID3\x04" + bytes(12)) == "mp3"
    others = [b"", b"\xff", b"\xff\xf1\x50\x80", b"\xff\xd8", b"RIFF1234WEBP", b"\0\0\0\x14ftypqt  ", b"II*\0"]
    for other in (*others, b"#EXTM3U\n", b"ffconcat version", b"OggS", b"<svg"):
        assert sniff(other) is None, other


def test_rules_ask_for_what_can_be_decoded() -> None:
    with pytest.raises(ValueError, match="gif"):
        MediaRules("image", 1, {"gif": "image/gif"})
    with pytest.raises(ValueError, match="bare"):
        MediaRules("image", 1, {"png": "image/png"}, {"jpeg": "/9j/"})
