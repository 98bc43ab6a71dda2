"""Media for the scripted engine: how many tokens they take, and that the answer depends on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from isogloss.engine.api import Delta
from isogloss.engine.media import Audio, Image, MediaInput, MediaRefused, Video
from isogloss.engine.scripted.media import ScriptedProcessor
from isogloss.engine.scripted.vocabulary import PLACEHOLDERS, ByteTokenizer

IMAGE, VIDEO, AUDIO = (PLACEHOLDERS[kind] for kind in ("image", "video", "audio"))


def picture(height: int, width: int, value: int = 7) -> Image:
    return Image(np.full((height, width, 3), value, dtype=np.uint8))


def sound(samples: int) -> Audio:
    return Audio(np.zeros(samples, dtype=np.float32), 16_000)


def place(tokens, *media):
    return ScriptedProcessor().place(tokens, media)


@pytest.mark.parametrize(
    ("size", "made"),
    [((64, 64), (64, 64)), ((8, 8), (8, 8)), ((128, 64), (64, 32)), ((100, 1000), (6, 64)), ((200, 1), (64, 1))],
)
def test_picture_sizes(size, made):
    assert ScriptedProcessor().image_size(*size) == made


def test_a_picture_of_no_use():
    with pytest.raises(MediaRefused):
        ScriptedProcessor().image_size(1, 201)


@pytest.mark.parametrize(
    ("frames", "chosen", "rate"),
    [(1, (0,), 8.0), (4, (0, 1, 2, 3), 8.0), (10, (0, 2, 5, 7), 3.2), (400, (0, 100, 200, 300), 0.08)],
)
def test_film_frames(frames, chosen, rate):
    plan = ScriptedProcessor().video_plan(frames, 8.0, 128, 128)
    assert (plan.frames, plan.height, plan.width) == (chosen, 64, 64)
    assert plan.frames_per_second == pytest.approx(rate)


def test_a_film_without_frames():
    with pytest.raises(MediaRefused):
        ScriptedProcessor().video_plan(0, 8.0, 128, 128)


@pytest.mark.parametrize(
    ("placeholder", "medium", "tokens"),
    [
        (IMAGE, picture(64, 64), 16),
        (IMAGE, picture(64, 33), 12),
        (IMAGE, picture(1, 1), 1),
        (VIDEO, Video(np.zeros((3, 32, 16, 3), dtype=np.uint8), 1.0), 6),
        (AUDIO, sound(16_000), 4),
        (AUDIO, sound(16_001), 5),
        (AUDIO, sound(0), 1),
    ],
)
def test_tokens_of_a_medium(placeholder, medium, tokens):
    assert place([1, placeholder, 2], medium).tokens == [1, *[placeholder] * tokens, 2]


def test_several_media_each_in_its_place():
    placed = place([IMAGE, 1, AUDIO, IMAGE], picture(16, 16), sound(8_000), picture(16, 32))
    assert placed.tokens == [IMAGE, 1, AUDIO, AUDIO, IMAGE, IMAGE]


@pytest.mark.parametrize(
    ("tokens", "media"),
    [([1], [picture(8, 8)]), ([IMAGE], []), ([IMAGE, IMAGE], [picture(8, 8)]), ([AUDIO], [picture(8, 8)])],
)
def test_placeholders_that_do_not_fit(tokens, media):
    with pytest.raises(MediaRefused):
        place(tokens, *media)


def test_digests_stand_for_contents_shapes_and_order():
    digests = {
        tuple(place([IMAGE] * len(media), *media).input.digests)
        for media in (
            [picture(8, 16)],
            [picture(16, 8)],
            [picture(8, 16, 8)],
            [picture(8, 16), picture(16, 8)],
            [picture(16, 8), picture(8, 16)],
        )
    }
    assert len(digests) == 5
    assert tuple(place([IMAGE], picture(8, 16)).input.digests) in digests


@pytest.mark.parametrize("changes", [{}, {"beams": 2}], ids=["sampled", "beams"])
async def test_the_answer_depends_on_the_digests(engine, request_of, changes):
    async def tokens(digest: bytes | None) -> list[int]:
        media = None if digest is None else MediaInput([digest])
        request = replace(request_of(), media=media, **changes)
        deltas = [event async for event in engine.generate(request) if isinstance(event, Delta)]
        return [token for delta in deltas for token in delta.token_ids]

    plain, first, again, other = [await tokens(digest) for digest in (None, b"a", b"a", b"b")]
    assert first == again
    assert plain != first != other != plain


def test_the_template_writes_a_placeholder_for_each_medium():
    content = [{"type": "text", "text": "a "}, {"type": "image"}, {"type": "text", "text": "b"}, {"type": "audio"}]
    tokenizer = ByteTokenizer()
    tokens = tokenizer.encode_chat([{"role": "user", "content": content}])
    assert tokenizer.decode(tokens, skip_special_tokens=False) == "<|user|>\na <|image|>b<|audio|>\n<|assistant|>\n"
    assert [token for token in tokens if token in PLACEHOLDERS.values()] == [IMAGE, AUDIO]


def test_a_text_writes_no_placeholder():
    tokens = ByteTokenizer().encode_chat([{"role": "user", "content": "<|image|>"}])
    assert not {*tokens} & {*PLACEHOLDERS.values()}
