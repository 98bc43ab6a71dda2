"""Fields of media: what the document says about files, and what follows from it."""

from __future__ import annotations

import copy
import io
from typing import Any

import av
import pytest
import soundfile
from isogloss_api import document
from isogloss_spec.faults import Fault, FaultTable
from isogloss_spec.ledger import ledger
from isogloss_spec.lint import lint
from isogloss_spec.media import MediaField, MediaLimits, media_fields, media_limits
from isogloss_spec.pairs import NoPair, Pairs
from isogloss_spec.sample_files import FILES
from PIL import Image

MIB = 2**20
PLACE = "mindie/chat.completions/messages.items.content.ContentParts.items"


@pytest.fixture
def mindie() -> Any:
    return copy.deepcopy(document("mindie"))


def test_fields_and_limits(mindie: Any) -> None:
    found = media_fields(mindie)
    assert {name: (field.kind, field.max_bytes // MIB) for name, field in found.items()} == {
        "image_url": ("image", 40),
        "video_url": ("video", 512),
        "audio_url": ("audio", 40),
        "input_audio": ("audio", 20),
    }
    assert media_limits(mindie) == MediaLimits(files=1000 * MIB, decoded=512 * MIB)
    assert media_fields(document("nim")) == {}


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("data:image/png;base64,eA==", True),
        ("DATA:,", True),
        ("/9j/4AAQ", True),
        ("/9j", False),
        ("demo.png", False),
        ("https://example.org/data:", False),
    ],
)
def test_what_is_the_file_itself(text: str, inside: bool) -> None:
    field = MediaField("image", "a.b", 1, {"jpeg": "image/jpeg"}, {"jpeg": "/9j/"})
    assert field.is_data(text) is inside


def test_without_bare_formats_only_data_is_the_file_itself() -> None:
    assert not MediaField("audio", "a.b", 1, {"wav": "audio/x-wav"}).is_data("/9j/4AAQ")


def test_entries_of_files(mindie: Any) -> None:
    found = {entry.id: entry for entry in ledger(mindie) if entry.kind == "media"}
    names = ("image_url", "video_url", "audio_url", "input_audio")
    assert found.keys() == {f"{PLACE}.{name}/{keyword}" for name in names for keyword in ("formats", "max_bytes")}
    entry = found[f"{PLACE}.input_audio/formats"]
    assert (entry.fault, entry.status, entry.level, entry.features) == ("mindie.media_refused", 422, "core", ("audio",))


def test_bodies_with_files_and_without(mindie: Any) -> None:
    pairs = Pairs(mindie, "create_chat_completion")
    for entry in ledger(mindie):
        if entry.kind == "media" and entry.keyword == "formats":
            pair = pairs.of(entry)
            assert pair.accept and pair.reject
            for body in (*pair.accept, *pair.reject):
                assert body["messages"][-1]["content"][-1].keys() == {entry.steps[-1].name}
        elif entry.kind == "media":
            with pytest.raises(NoPair):
                pairs.of(entry)


@pytest.mark.parametrize("name", FILES)
def test_sample_files_can_be_decoded(name: str) -> None:
    file = io.BytesIO(FILES[name]())
    if name == "png":
        assert Image.open(file).convert("RGB").getpixel((7, 7)) == (128, 128, 128)
    elif name == "wav":
        assert soundfile.info(file).duration == 0.1
    else:
        with av.open(file) as film:
            assert len([*film.decode(video=0)]) == film.streams.video[0].frames == 8


def test_a_reason_is_told_in_the_documents_words(mindie: Any) -> None:
    fault = Fault("mindie.media_refused", param="a.b", values={"reason": "broken"})
    assert FaultTable(mindie).render(fault).body["error"] == "'a.b' cannot be used: the file is damaged."


@pytest.mark.parametrize(
    ("spoil", "finding"),
    [
        (lambda part, _: part["image_url"].pop("x-feature"), "needs x-feature"),
        (lambda part, _: part["image_url"].update({"x-feature": "video"}), "needs x-feature"),
        (lambda part, _: part["image_url"]["x-media"].update(fault="rule"), "no fault rule with reasons"),
        (lambda part, _: part["image_url"]["x-media"].update(kind="smell"), "enum is broken"),
        (lambda part, _: part["image_url"]["x-media"].pop("formats"), "required is broken"),
        (lambda _, whole: whole.update({"x-limits": {"body": 1}}), "x-limits says nothing"),
    ],
)
def test_lint(mindie: Any, spoil: Any, finding: str) -> None:
    spoil(mindie["components"]["schemas"]["ContentPart"]["properties"], mindie)
    findings = lint(mindie)
    assert findings and all(finding in found for found in findings)
