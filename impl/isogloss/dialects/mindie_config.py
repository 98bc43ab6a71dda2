"""MindIE's own configuration file, as far as it changes what clients see.

Its other keys (addresses, certificates, devices, batching) are matters of the settings of this server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from isogloss.engine.api import ModelCard

MIB = 2**20


class MindIEConfigError(Exception):
    """The file cannot be used. The text names the file and the key, in one line."""


@dataclass(frozen=True, slots=True)
class MindIEConfig:
    """What the file says; the defaults stand for no file."""

    model_name: str | None = None
    """The name that requests use; None for the engine's."""
    max_seq_len: int | None = None
    """Tokens of prompt and answer together; None for the model's context length."""
    max_input_token_len: int | None = None
    """Tokens of a prompt; None for the model's context length."""
    max_iter_times: int = 512
    """Tokens of an answer."""
    truncation: bool = False
    """Whether a prompt that is too long is cut instead of refused."""
    full_text: bool = False
    """Whether each chunk of a stream has the whole text so far."""
    body_limit: int | None = None
    """Bytes of a request's body; None for what the document says."""
    adapters: Mapping[str, Path] = field(default_factory=dict)
    """LoRA adapters: name to folder."""

    def served(self, card: ModelCard) -> ServedLimits:
        """The limits with a model behind them."""
        length = card.context_length
        sequence = length if self.max_seq_len is None else self.max_seq_len
        prompt = length if self.max_input_token_len is None else self.max_input_token_len
        return ServedLimits(prompt, sequence, self.max_iter_times, length)


@dataclass(frozen=True, slots=True)
class ServedLimits:
    """How many tokens there may be."""

    max_input_token_len: int
    max_seq_len: int
    max_iter_times: int
    context_length: int

    @property
    def prompt(self) -> int:
        """Tokens that a prompt may have: one less than would leave no room for an answer."""
        return min(self.max_input_token_len, self.length - 1)

    @property
    def length(self) -> int:
        """Tokens of prompt and answer together."""
        return min(self.max_seq_len, self.context_length)

    def answer(self, asked: int, prompt_tokens: int) -> int:
        """Tokens that an answer may have."""
        return min(asked, self.max_iter_times, self.length - prompt_tokens)


# The defaults below are those of MindIE's manual for keys that a file leaves out.
class _Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, alias_generator=to_camel)


class _Server(_Section):
    full_text_enabled: bool = False
    open_ai_support: str = "vllm"
    max_request_length: Annotated[int | None, Field(ge=1, le=100)] = None


_Name = Annotated[str, Field(max_length=256, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]


class _Lora(_Section):
    name: _Name
    path: Annotated[str, Field(min_length=1)]
    base_model_name: str | None = None


class _Model(_Section):
    model_name: _Name
    lora_modules: Annotated[list[_Lora] | None, Field(alias="LoraModules")] = None


class _Deploy(_Section):
    max_seq_len: Annotated[int, Field(ge=1)] = 2560
    max_input_token_len: Annotated[int, Field(ge=1, le=4_194_304)] = 2048
    truncation: bool | Literal[0, 1] = False
    models: Annotated[list[_Model], Field(alias="ModelConfig", max_length=1)] = []
    lora_modules: Annotated[list[_Lora] | None, Field(alias="LoraModules")] = None

    @property
    def loras(self) -> list[_Lora]:
        """All adapters, wherever they stand."""
        return [*(self.lora_modules or ()), *(one for model in self.models for one in model.lora_modules or ())]


class _Schedule(_Section):
    max_iter_times: Annotated[int, Field(ge=1)] = 512


class _Backend(_Section):
    deploy: Annotated[_Deploy, Field(alias="ModelDeployConfig")] = _Deploy()
    schedule: Annotated[_Schedule, Field(alias="ScheduleConfig")] = _Schedule()


class _File(_Section):
    server: Annotated[_Server, Field(alias="ServerConfig")] = _Server()
    backend: Annotated[_Backend, Field(alias="BackendConfig")] = _Backend()


def load_mindie_config(path: Path) -> MindIEConfig:
    """Read the file. Raises MindIEConfigError for one that is broken or asks for what this server does not do."""
    try:
        parsed = _File.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise MindIEConfigError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except ValidationError as error:
        raise MindIEConfigError(_reason(path, error)) from None
    except (ValueError, RecursionError):
        raise MindIEConfigError(f"{path} is not JSON") from None
    _refuse_what_is_not_done(path, parsed)
    return _config(parsed)


def _reason(path: Path, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or "the file"
    return f"{path}: {key}: {first['msg']}"


def _refuse_what_is_not_done(path: Path, parsed: _File) -> None:
    if parsed.server.open_ai_support != "vllm":
        raise MindIEConfigError(
            f"{path}: ServerConfig.openAiSupport: only 'vllm' is served, MindIE's other variant of the interface is not"
        )
    deploy = parsed.backend.deploy
    where = f"{path}: BackendConfig.ModelDeployConfig.LoraModules"
    names = [lora.name for lora in deploy.loras]
    models = [model.model_name for model in deploy.models]
    if len({*names, *models}) < len(names) + len(models):
        raise MindIEConfigError(f"{where}: each adapter needs a name of its own")
    if any(models and lora.base_model_name not in (None, *models) for lora in deploy.loras):
        raise MindIEConfigError(f"{where}: baseModelName must be the modelName of ModelConfig")


def _config(parsed: _File) -> MindIEConfig:
    server, deploy = parsed.server, parsed.backend.deploy
    megabytes = server.max_request_length
    return MindIEConfig(
        model_name=deploy.models[0].model_name if deploy.models else None,
        max_seq_len=deploy.max_seq_len,
        max_input_token_len=deploy.max_input_token_len,
        max_iter_times=parsed.backend.schedule.max_iter_times,
        truncation=bool(deploy.truncation),
        full_text=server.full_text_enabled,
        adapters={lora.name: Path(lora.path) for lora in deploy.loras},
        body_limit=None if megabytes is None else megabytes * MIB,
    )
