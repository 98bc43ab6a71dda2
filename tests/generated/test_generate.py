"""Generating again changes nothing."""

from __future__ import annotations

from pathlib import Path

from isogloss_spec.__main__ import documents_in
from isogloss_spec.generate.package import generate_package

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_what_is_committed_is_what_the_documents_say(tmp_path: Path) -> None:
    generate_package(documents_in(ROOT / "openapi"), tmp_path)
    assert files(tmp_path) == files(ROOT / "generated" / "isogloss_api")


def test_every_file_says_that_it_is_generated() -> None:
    for name, content in files(ROOT / "generated" / "isogloss_api").items():
        first = content.splitlines()[:2]
        assert name == "py.typed" or any(b"make generate" in line or b"x-generated" in line for line in first), name
