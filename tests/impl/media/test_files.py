"""Local files: inside the folder and regular, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from isogloss.engine.media import Image
from isogloss.media import files
from isogloss.media.api import MediaError, MediaRules, Reference
from isogloss.media.files import open_local
from isogloss.media.loader import MediaLoader
from isogloss.media.spool import Intake
from support.media_files import PlainProcessor, picture

Make = Callable[..., MediaLoader]
PICTURE = picture()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder `media` with pictures, beside one with a secret."""
    media, outside = tmp_path / "media", tmp_path / "outside"
    for made in (media / "sub", outside):
        made.mkdir(parents=True)
    for path in (media / "demo.png", media / "sub" / "a b%20ü.png", outside / "secret.png"):
        path.write_bytes(PICTURE)
    (media / "inner.png").symlink_to("sub/../demo.png")
    (media / "out.png").symlink_to(outside / "secret.png")
    (media / "dangling.png").symlink_to(outside / "none.png")
    (media / "outdir").symlink_to(outside)
    (media / "loop").symlink_to("loop")
    os.mkfifo(media / "fifo.png")
    (tmp_path / "media-2").mkdir()
    (tmp_path / "media-2" / "x.png").write_bytes(PICTURE)
    return media


@pytest.mark.parametrize(
    "text",
    [
        *"demo.png file://demo.png FILE://demo.png inner.png sub/../demo.png file://sub/a%20b%2520%C3%BC.png".split(),
        *"{folder}/demo.png file://{folder}/demo.png {folder}/../media/demo.png".split(),
        "sub/a b%20ü.png",
    ],
)
async def test_files_of_the_folder(make_loader: Make, folder: Path, image: MediaRules, text: str) -> None:
    media = await make_loader().load(Reference(text.format(folder=folder)), image, PlainProcessor())
    assert isinstance(media, Image)
    assert media.pixels[0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("none.png", "not_found"),
        ("sub", "not_found"),
        ("", "not_found"),
        ("demo.png/x", "not_found"),
        ("fifo.png", "not_found"),
        ("loop", "not_found"),
        ("x" * 5000, "not_found"),
        ("../outside/secret.png", "not_allowed"),
        ("../outside/none.png", "not_allowed"),
        ("{outside}/secret.png", "not_allowed"),
        ("{outside}/none.png", "not_allowed"),
        ("file://{outside}/secret.png", "not_allowed"),
        ("file://../outside/secret.png", "not_allowed"),
        ("file://%2e%2e/outside/secret.png", "not_allowed"),
        ("{folder}-2/x.png", "not_allowed"),
        ("{outside}/../media/../outside/secret.png", "not_allowed"),
        ("out.png", "not_allowed"),
        ("dangling.png", "not_allowed"),
        ("outdir/secret.png", "not_allowed"),
        ("outdir/none.png", "not_allowed"),
        ("/dev/zero", "not_allowed"),
        ("/proc/self/environ", "not_allowed"),
        ("demo.png\0", "not_allowed"),
        ("file:///{folder}/demo.png%00", "not_allowed"),
        ("file:{folder}/demo.png", "not_allowed"),
        ("ftp://a/demo.png", "not_allowed"),
        ("concat:demo.png", "not_allowed"),
        ("\ud800", "not_allowed"),
    ],
)
async def test_what_is_not_read(make_loader: Make, folder: Path, image: MediaRules, text: str, reason: str) -> None:
    with pytest.raises(MediaError) as caught:
        text = text.format(folder=folder, outside=folder.parent / "outside")
        await make_loader().load(Reference(text), image, PlainProcessor())
    assert caught.value.reason == reason


def test_nothing_outside_is_ever_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = os.path.realpath
    monkeypatch.setattr(files.os.path, "realpath", lambda path: (seen.append(str(path)), real(path))[1])  # type: ignore[attr-defined]
    with pytest.raises(MediaError):
        open_local(folder, "../outside/x/../../media/../outside/secret.png", Intake(10**6))
    assert set(seen) == {str(folder)}


def test_a_link_that_appears_between_check_and_opening(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = files._inside

    def swapped(root: Path, path: str) -> Path:
        found = checked(root, path)
        (folder / "sub").rename(folder / "old")
        (folder / "sub").symlink_to(folder.parent / "outside")
        return found

    (folder / "sub" / "secret.png").write_bytes(PICTURE)
    monkeypatch.setattr(files, "_inside", swapped)
    with pytest.raises(MediaError, match="not_found"):
        open_local(folder, "sub/secret.png", Intake(10**6))


def test_size_is_that_of_what_was_opened(folder: Path) -> None:
    size = len(PICTURE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(MediaError, match="too_large"):
        open_local(folder, "demo.png", Intake(size - 1))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    file = open_local(folder, "demo.png", Intake(size))
    assert file.size == size
    file.close()


def moved(folder: Path) -> Path:
    return folder.rename(folder.parent / "elsewhere")


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


async def test_a_folder_that_is_a_link_or_is_missing(make_loader: Make, folder: Path, image: MediaRules) -> None:
    loader = make_loader()
    elsewhere = moved(folder)
    with pytest.raises(MediaError, match="not_found"):
        await loader.load(Reference("demo.png"), image, PlainProcessor())
    link(folder, elsewhere)
    for text in ("demo.png", str(folder / "demo.png"), str(elsewhere / "demo.png")):
        await loader.load(Reference(text), image, PlainProcessor())
