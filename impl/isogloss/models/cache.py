"""Folders that are made once and shared by every process of the machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

LAYOUT = "gguf-1"
"""Part of every digest: a new way to convert gets a new folder."""


def default_cache() -> Path:
    """`ISOGLOSS_CACHE_DIR`, or else `~/.cache/isogloss`."""
    chosen = os.environ.get("ISOGLOSS_CACHE_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "isogloss"


def digest(source: Path) -> str:
    """Names a file by what is in it: 32 hexadecimal digits."""
    with source.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(f"{LAYOUT}/{content}".encode()).hexdigest()[:32]


def make_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Fill `folder` by `make(empty folder)` unless it exists.

    Processes that race wait for one of them. The folder appears complete or not at all: it is
    filled under another name beside its place and renamed.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(folder.name + ".lock")):
        if not folder.is_dir():
            _fill(folder, make)
    return folder


def _fill(folder: Path, make: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        make(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
