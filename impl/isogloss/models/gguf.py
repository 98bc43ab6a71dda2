"""GGUF files become folders of safetensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert_gguf(source: Path, folder: Path) -> None:
    """Write model and tokenizer of a GGUF file into a folder.

    Weights are kept as the float32 values that dequantising gives, so a float32 engine computes
    exactly what the file says; narrower types are derived when the model is loaded.
    """
    where = {
        "pretrained_model_name_or_path": str(source.parent),
        "gguf_file": source.name,
        "local_files_only": True,
    }
    tokenizer = AutoTokenizer.from_pretrained(**where)
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    _forget_quantization(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _forget_quantization(model: Any) -> None:
    # The weights are plain by now, but transformers refuses to save a model that it still
    # believes to be quantized.
    model.hf_quantizer = None
    for holder, name in (
        (model.config, "quantization_config"),
        (model, "is_quantized"),
        (model, "quantization_method"),
    ):
        if hasattr(holder, name):
            delattr(holder, name)
