"""The default engine: transformers models on whatever device torch has.

Importing this package prepares the process for torch; its modules import torch afterwards.
"""

from __future__ import annotations

from isogloss.engine.torch.process import prepare_process

prepare_process()
