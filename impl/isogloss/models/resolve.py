"""From what a user writes to a folder that transformers can load."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isogloss.models.cache import digest, make_once
from isogloss.models.package import find_smollm2

logger = logging.getLogger("isogloss.models")

EMBEDDED = "smollm2"


class ModelNotFound(Exception):
    """No model goes by this name or path. The text says what to do."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that can be loaded."""

    folder: Path
    """Holds config.json, weights as safetensors, and the tokenizer."""
    name: str
    """What to call it when nobody chose a name."""

    @property
    def weight_bytes(self) -> int:
        """Size of the weights as they are stored."""
        return sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))


Converter = Callable[[Path, Path], None]
"""Turns a GGUF file (first path) into a model in an empty folder (second path)."""


def resolve_model(spec: str, cache: Path, convert: Converter | None = None) -> ResolvedModel:
    """Find a model by the name `smollm2`, by a folder or by a `.gguf` file.

    A GGUF file is converted once, into `cache/models/<digest of the file>`: seconds for a small
    model. `convert` stands in for the real conversion in tests. Raises ModelNotFound.
    """
    if spec == EMBEDDED and not Path(spec).exists():
        return ResolvedModel(_converted(_embedded(), cache, convert), EMBEDDED)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _folder(path)
    if path.is_file() and path.suffix == ".gguf":
        return ResolvedModel(_converted(path, cache, convert), path.stem)
    raise ModelNotFound(
        f"{spec!r} is no model: give {EMBEDDED!r}, a folder with config.json and safetensors, "
        "or a .gguf file. Nothing is downloaded from a hub."
    )


def _embedded() -> Path:
    file = find_smollm2()
    if file is None:
        raise ModelNotFound(
            f"the embedded model {EMBEDDED!r} is not installed: "
            f"run `isogloss models add {EMBEDDED}`, or `make` in a checkout."
        )
    return file


def _folder(path: Path) -> ResolvedModel:
    if not (path / "config.json").is_file():
        raise ModelNotFound(f"the folder {str(path)!r} holds no config.json, so it is no model.")
    return ResolvedModel(path.resolve(), path.resolve().name)


def _converted(source: Path, cache: Path, convert: Converter | None) -> Path:
    def make(folder: Path) -> None:
        logger.info("converting %s once; a small model takes about half a minute", source.stem)
        (convert or _load_converter())(source, folder)

    return make_once(cache / "models" / digest(source), make)


def _load_converter() -> Converter:
    # Imported when needed: torch and transformers take seconds. The engine's package comes first,
    # because it makes their import safe and keeps them off hubs.
    importlib.import_module("isogloss.engine.torch")
    converter: Converter = importlib.import_module("isogloss.models.gguf").convert_gguf
    return converter
