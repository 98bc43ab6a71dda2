"""LoRA adapters in PEFT's format: read from a folder, checked against the model, never from a hub.

A folder holds `adapter_config.json` and `adapter_model.safetensors`. Of what PEFT can train, plain LoRA on linear
layers is served; everything else is refused with its reason, since half an adapter would answer wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers.pytorch_utils import Conv1D

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
KEY = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<part>[AB])\.weight")

REFUSED = {
    "use_dora": "DoRA",
    "modules_to_save": "whole modules beside the LoRA weights",
    "target_parameters": "LoRA on bare parameters",
    "lora_bias": "LoRA with a bias",
    "alora_invocation_tokens": "activated LoRA",
    "trainable_token_indices": "trained tokens",
    "use_bdlora": "block-diagonal LoRA",
    "arrow_config": "arrow routing",
    "megatron_config": "Megatron layers",
}
"""Keys of the configuration that must not be set, and what they stand for."""


class AdapterError(Exception):
    """An adapter cannot be served. The text names it and says why, in one line."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What an adapter adds to the output of one linear layer: scaling · B(A(x))."""

    down: torch.Tensor
    """A, [rank, inputs]."""
    up: torch.Tensor
    """B times the scaling, [outputs, rank]."""

    def of(self, rows: torch.Tensor) -> torch.Tensor:
        """[rows, inputs] to [rows, outputs]."""
        return rows @ self.down.T @ self.up.T


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter, on the model's device and in its number type."""

    name: str
    deltas: Mapping[str, Delta]
    """By the name of the linear layer in the model."""


def load_adapter(name: str, folder: Path, model: Any) -> Adapter:
    """Read an adapter for a model of transformers. Raises AdapterError."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
        weights = load_file(folder / WEIGHTS)
    except OSError as error:
        raise _error(name, f"{error.filename or folder / WEIGHTS} cannot be read") from None
    except (ValueError, RecursionError):
        raise _error(name, f"{folder / CONFIG} is not JSON") from None
    except SafetensorError:
        raise _error(name, f"{folder / WEIGHTS} is not safetensors") from None
    try:
        _check_config(config)
        return Adapter(name, _deltas(config, weights, model))
    except ValueError as error:
        raise _error(name, str(error)) from None


def _error(name: str, reason: str) -> AdapterError:
    return AdapterError(f"adapter {name!r}: {reason}")


def _check_config(config: Any) -> None:
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise ValueError("only adapters of PEFT's type LORA are served")
    for key, meaning in REFUSED.items():
        if config.get(key):
            raise ValueError(f"{meaning} is not served ({key})")
    if config.get("bias", "none") != "none":
        raise ValueError("trained biases are not served (bias)")
    for key in ("lora_alpha", "r"):
        if type(config.get(key)) not in (int, float) or config[key] <= 0:
            raise ValueError(f"{key} must be a number above 0")


def _deltas(config: Mapping[str, Any], weights: Mapping[str, torch.Tensor], model: Any) -> dict[str, Delta]:
    pairs: dict[str, dict[str, torch.Tensor]] = {}
    for key, weight in weights.items():
        match = KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"the weight {key!r} is not of a kind that is served")
        pairs.setdefault(match["module"], {})[match["part"]] = weight
    if not pairs:
        raise ValueError("there are no weights")
    return {module: _delta(config, module, pair, model) for module, pair in pairs.items()}


def _delta(config: Mapping[str, Any], module: str, pair: Mapping[str, torch.Tensor], model: Any) -> Delta:
    if pair.keys() != {"A", "B"}:
        raise ValueError(f"{module!r} has one of its two matrices only")
    down, up = pair["A"], pair["B"]
    inputs, outputs = _layer_size(module, model)
    rank = len(down)
    if down.shape != (rank, inputs) or up.shape != (outputs, rank):
        raise ValueError(f"the weights of {module!r} are of another size than the model's")
    if not (down.isfinite().all() and up.isfinite().all()):
        raise ValueError(f"the weights of {module!r} are not finite numbers")
    up = up.float() * scaling(config, module, rank)
    return Delta(down.to(model.device, model.dtype), up.to(model.device, model.dtype))


def _layer_size(module: str, model: Any) -> tuple[int, int]:
    """Inputs and outputs of a linear layer."""
    try:
        layer = model.get_submodule(module)
    except AttributeError:
        raise ValueError(f"the model has no layer {module!r}") from None
    if isinstance(layer, Conv1D):  # a linear layer all the same, with its weight the other way round
        return layer.weight.shape[0], layer.weight.shape[1]
    if isinstance(layer, torch.nn.Linear):
        return layer.in_features, layer.out_features
    raise ValueError(f"{module!r} is no linear layer")


def scaling(config: Mapping[str, Any], module: str, rank: int) -> float:
    """The factor of one layer, as PEFT computes it."""
    alpha = next(
        (
            value
            for pattern, value in (config.get("alpha_pattern") or {}).items()
            if re.match(rf"(.*\.)?({pattern})$", module)
        ),
        config["lora_alpha"],
    )
    return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") else rank)
