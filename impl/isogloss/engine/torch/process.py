"""What must be true of the process before torch and transformers are imported."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

CANN_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
CANN_FOLDER = Path("/usr/local/Ascend")


def has_cann(environ: MutableMapping[str, str] = os.environ, folder: Path = CANN_FOLDER) -> bool:
    """Whether the Ascend toolkit, which torch-npu needs to load, seems to be installed."""
    return any(environ.get(name) for name in CANN_VARIABLES) or folder.is_dir()


def prepare_process(environ: MutableMapping[str, str] = os.environ) -> None:
    """Keep transformers off every hub, and keep torch importable.

    With torch-npu installed and no CANN, `import torch` itself fails while it autoloads torch-npu.
    What the user has set stays as it is.
    """
    environ.setdefault("HF_HUB_OFFLINE", "1")
    if not has_cann(environ):
        environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
