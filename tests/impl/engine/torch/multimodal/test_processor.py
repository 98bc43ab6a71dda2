"""What media become on their way into a prompt, against transformers' processors and models."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isogloss.engine.media import Audio, Image, MediaRefused, Video
from isogloss.engine.torch.multimodal.vision import Film, Patches, PixelBounds
from support.media_models import film, picture, reference_patches, sound
from transformers import Qwen2VLImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

SIDES = st.integers(1, 3000)


@given(SIDES, SIDES, st.sampled_from([14, 28]), st.sampled_from([3136, 100352]), st.sampled_from([200704, 1003520]))
def test_sizes_are_those_of_the_processor(height, width, side, least, most):
    bounds = PixelBounds(least, most)
    try:
        expected = smart_resize(height, width, side, least, most)
    except ValueError:
        with pytest.raises(MediaRefused):
            bounds.fit(height, width, side)
        return
    size = bounds.fit(height, width, side)
    assert size == expected
    assert not size[0] % side
    assert not size[1] % side


def test_bounds_come_from_the_folder(sees):
    assert sees.processor.image_size(1000, 1000) == (112, 112)
    assert sees.processor.image_size(10, 10) == (56, 56)


@pytest.mark.parametrize(("height", "width"), [(56, 84), (112, 28), (28, 112)])
def test_patches_of_pictures_are_those_of_the_processor(sees, height, width):
    image = picture(4, height, width)
    expected = Qwen2VLImageProcessorPil.from_pretrained(sees.folder)(images=[image.pixels], return_tensors="pt")
    patches = sees.loaded.family.vision.cut(image, torch.device("cpu"))
    torch.testing.assert_close(patches, expected["pixel_values"], atol=1e-6, rtol=0)
    assert sees.loaded.family.vision.grid(image) == tuple(expected["image_grid_thw"][0].tolist())


@pytest.mark.parametrize("frames", [1, 4, 7])
def test_patches_of_films(sees, frames):
    video = film(5, frames, 28, 84)
    patches = sees.loaded.family.vision.cut(video, torch.device("cpu"))
    torch.testing.assert_close(patches, reference_patches(video.frames), atol=1e-6, rtol=0)


@given(st.integers(1, 5000), st.floats(0.1, 120), st.sampled_from([2, 4]), st.integers(2, 12), st.integers(12, 64))
def test_films_are_thinned_out_evenly(frames, rate, group, least, most):
    chosen = Film(PixelBounds(1, 9), 2.0, least, most).chosen(frames, rate, group)
    assert chosen == tuple(sorted(set(chosen)))
    assert 0 <= chosen[0] <= chosen[-1] < frames
    assert len(chosen) % group == 0 or len(chosen) == frames < group
    assert len(chosen) <= most
    gaps = {later - earlier for earlier, later in pairwise(chosen)}
    assert not gaps or max(gaps) - min(gaps) <= 1
    seconds = frames / rate
    if max(least, group) <= 2 * seconds <= min(most, frames):
        assert 2 * seconds - group <= len(chosen) <= 2 * seconds


def test_the_plan_of_a_film(sees):
    """Ten seconds at 30 frames a second, of which 2 a second would be 20: the folder allows 8."""
    plan = sees.processor.video_plan(300, 30.0, 480, 640)
    assert plan.frames == (0, 37, 75, 112, 150, 187, 225, 262)
    assert plan.frames_per_second == pytest.approx(0.8)
    assert (plan.height, plan.width) == (56, 84)
    assert sees.processor.video_plan(300, 300.0, 480, 640).frames == (0, 75, 150, 225)
    with pytest.raises(MediaRefused):
        sees.processor.video_plan(0, 30.0, 480, 640)
    with pytest.raises(MediaRefused):
        sees.processor.video_plan(3, math.inf, 480, 640)


def test_many_frames_share_what_a_film_may_take():
    patches = Patches(14, 2, 2)
    wide = Film(PixelBounds(4 * 784, 768 * 784), tokens=1000)
    assert wide.bounds_for(2, patches).most == 768 * 784
    assert wide.bounds_for(100, patches).most == 18 * 784
    assert wide.bounds_for(768, patches).most == int(4 * 784 * 1.05)


@given(st.integers(1, 70_000))
def test_sound_takes_as_many_tokens_as_transformers_says(hears, samples):
    frames = min(math.ceil(samples / 160), 400)
    expected = (((frames - 1) // 2 + 1) - 2) // 2 + 1
    audio = Audio(np.zeros(samples, np.float32), 16000)
    if expected < 1:
        with pytest.raises(MediaRefused):
            hears.loaded.family.count(audio)
    else:
        assert hears.loaded.family.count(audio) == expected


SEEN = st.one_of(
    st.builds(picture, st.just(0), st.sampled_from([28, 56]), st.sampled_from([28, 84])),
    st.builds(
        film, st.just(0), st.integers(1, 12), st.just(28), st.sampled_from([28, 56]), st.sampled_from([0.5, 2.0, 3.7])
    ),
)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "some words "]), SEEN), min_size=1, max_size=4),
    st.sampled_from(["", "end"]),
)
def test_rotary_positions_are_those_of_the_model(seeing, parts, end):
    placed = seeing.place(*[part for pair in parts for part in pair], end)
    inputs = {name: value for name, value in seeing.inputs(placed).items() if "pixel" not in name}
    expected, _ = seeing.stock.model.get_rope_index(**inputs)
    rotary = placed.input.rotary
    assert torch.equal(rotary.prompt, expected[:, 0])
    if end:
        assert rotary.between(len(placed.tokens), len(placed.tokens) + 2)[0].tolist() == [
            int(expected[0, 0, -1]) + 1,
            int(expected[0, 0, -1]) + 2,
        ]


def test_neighbours_have_boxes_of_their_own(sees):
    placed = sees.place(picture(0, 28, 56), film(0, 4, 28, 28), "a")
    assert placed.input.rotary.prompt.tolist() == [[0, 0, 2, 3, 3], [0, 0, 2, 2, 3], [0, 1, 2, 2, 3]]


@given(st.integers(0, 12), st.integers(0, 12))
def test_positions_of_a_part_are_a_part_of_the_positions(sees, first, count):
    rotary = sees.place("a", picture(0, 28, 56), "bc").input.rotary
    assert torch.equal(rotary.between(first, first + count), rotary.between(0, 40)[:, first : first + count])


def test_placeholders_are_written_out_in_order(sees):
    marks = sees.stock.config.image_token_id, sees.stock.config.video_token_id
    media = [picture(), film(), picture(1, 28, 56)]
    placed = sees.processor.place([50, marks[0], 51, 52, marks[1], marks[0]], media)
    assert placed.tokens == [50, *[marks[0]] * 6, 51, 52, *[marks[1]] * 16, *[marks[0]] * 2]
    assert [(one.medium, one.first, one.count) for one in placed.input.placed] == [
        (media[0], 1, 6),
        (media[1], 9, 16),
        (media[2], 25, 2),
    ]


def test_a_prompt_without_media_stays_itself(sees):
    placed = sees.processor.place([50, 51], [])
    assert placed.tokens == [50, 51]
    assert not placed.input.digests


@pytest.mark.parametrize(
    ("parts", "media"),
    [
        (["text"], [picture()]),
        (["<|image_pad|>"], []),
        (["<|image_pad|><|image_pad|>"], [picture()]),
        (["<|video_pad|>"], [picture()]),
        (["<|image_pad|><|video_pad|>"], [film(), picture()]),
        (["<|image_pad|>"], [picture(0, 30, 56)]),
        (["<|image_pad|>"], [Image(np.zeros((0, 28, 3), np.uint8))]),
        (["<|image_pad|>"], [sound()]),
        (["<|video_pad|>"], [Video(np.zeros((0, 28, 28, 3), np.uint8), 2.0)]),
    ],
)
def test_what_does_not_fit_is_refused(sees, parts, media):
    with pytest.raises(MediaRefused):
        sees.processor.place(sees.loaded.tokenizer.encode("".join(parts)), media)


def test_sound_of_another_speed_is_refused(hears):
    with pytest.raises(MediaRefused):
        hears.place(Audio(np.zeros(9000, np.float32), 8000))


def test_of_several_sounds_the_one_that_is_too_short_is_named(hears):
    short = Audio(np.zeros(10, np.float32), 16000)
    with pytest.raises(MediaRefused) as caught:
        hears.place("a", sound(), short)
    assert caught.value.medium == 1
    with pytest.raises(MediaRefused) as caught:
        hears.place("a", sound(), sound(), "<|AUDIO|>")
    assert caught.value.medium is None


def test_models_say_what_they_take(sees, hears):
    assert sees.processor.kinds == {"image", "video"}
    assert hears.processor.kinds == {"audio"}
    assert (hears.processor.sample_rate, hears.processor.longest_audio) == (16000, 4.0)
    for refused in (lambda: hears.processor.image_size(56, 56), lambda: hears.processor.video_plan(8, 2.0, 56, 56)):
        with pytest.raises(MediaRefused):
            refused()


def test_digests_tell_contents_apart(sees):
    still, moving = picture(1, 56, 56), film(1)
    media = [
        [still],
        [picture(2, 56, 56)],
        [Image(still.pixels[:28])],
        [still, still],
        [moving],
        [Video(moving.frames, 3.0)],
        [Video(moving.frames[:, :, ::-1], 2.0)],
    ]
    marks = {Image: sees.stock.config.image_token_id, Video: sees.stock.config.video_token_id}
    digests = [tuple(sees.processor.place([marks[type(one)] for one in some], some).input.digests) for some in media]
    assert len(set(digests)) == len(digests)
    assert tuple(sees.processor.place([marks[Image]], [picture(1, 56, 56)]).input.digests) == digests[0]
