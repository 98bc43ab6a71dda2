"""The server's settings: command line over environment (`ISOGLOSS_…`) over a TOML file over defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

ENV_PREFIX = "ISOGLOSS_"
_SUITE_PREFIX = "ISOGLOSS_CONFORMANCE_"
"""Variables of the conformance suite, which often runs in the same environment."""

MEDIA_HOSTS = "ALLOWED_MEDIA_DOMAINS_ENV"
"""MindIE's own variable for the hosts that media may come from."""

DEFAULT_FILE = Path("isogloss.toml")
"""Read from the working folder if it is there and no other file was named."""


class SettingsError(Exception):
    """The settings are wrong. The text says which one and why, and holds no value of it."""


def _setting(group: str, default: Any, description: str, **bounds: Any) -> Any:
    return Field(default, description=description, json_schema_extra={"group": group}, **bounds)


def _server(default: Any, description: str, **bounds: Any) -> Any:
    return _setting("server", default, description, **bounds)


def _engine(default: Any, description: str, **bounds: Any) -> Any:
    return _setting("engine", default, description, **bounds)


def _limit(default: Any, description: str, **bounds: Any) -> Any:
    return _setting("limits", default, description, **bounds)


class Settings(BaseSettings):
    """Everything that `isogloss serve` can be told. Lists are written with commas."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True)

    host: str = _server("127.0.0.1", "Address to listen on.")
    port: int = _server(8000, "Port to listen on; 0 picks a free one.", ge=0, le=65535)
    port_file: Path | None = _server(None, "File to write the port to once requests are taken.")
    dialects: Annotated[tuple[str, ...], NoDecode] = _server(
        ("nim", "atoma", "acs", "mindie"), "Dialects to serve, each at /NAME.", min_length=1
    )
    default_dialect: str | None = _server(
        None, "The dialect that is served without a prefix too, or `none`; by default nim, or the first of --dialects."
    )
    mindie_config: Path | None = _server(
        None, "MindIE's own config.json: its limits, fullTextEnabled and modelName hold for that dialect."
    )
    media_folder: Path = _server(
        Path("/data/multimodal_inputs"), "The only folder that pictures, films and sound of requests are read from."
    )
    media_hosts: Annotated[tuple[str, ...] | None, NoDecode] = _server(
        None,
        f"Hosts or IP addresses, perhaps with a port, that they are fetched from; by default {MEDIA_HOSTS}.",
    )
    api_keys: Annotated[tuple[SecretStr, ...] | None, NoDecode] = _server(
        None, "Keys that callers must have. Others see them on a command line: better use the environment or a file."
    )
    api_key_file: Path | None = _server(None, "File with one key per line; lines that begin with # are left out.")
    log_level: Literal["debug", "info", "warning", "error"] = _server(
        "info", "`debug` (which may show parts of requests), `info`, `warning` or `error`."
    )

    engine: Literal["torch", "scripted"] = _engine("torch", "`torch`, or `scripted`: no model, for tests.")
    model: str = _engine("smollm2", "Model of the torch engine: `smollm2`, a folder or a .gguf file.")
    model_name: str | None = _engine(None, "Name that requests use for the model; by default that of its place.")
    device: str = _engine("auto", "`auto`, `cpu`, or what torch calls it, like `npu:0`.")
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = _engine(
        "auto", "Number type of the weights: `auto`, `bf16`, `fp16` or `fp32`."
    )
    adapter: Annotated[tuple[str, ...], NoDecode] = _engine(
        (), "LoRA adapter in PEFT's format, as NAME=FOLDER; requests name it as their model. May be repeated."
    )
    tool_parser: str = _engine(
        "auto",
        "How the model writes calls of functions: a family's name, `none`, or `auto` for what its template shows.",
    )
    reasoning_parser: str = _engine("auto", "The same for how it marks what it thinks.")
    max_model_len: int | None = _engine(None, "Tokens of prompt and answer; by default what the model can.", ge=1)
    max_num_seqs: int | None = _engine(None, "Sequences that run at once; by default what the engine likes.", ge=1)
    max_waiting: int | None = _engine(None, "Requests that may wait for the engine.", ge=0)
    kv_cache_gib: float | None = _engine(None, "Size of the KV cache in GiB; by default by free memory.", gt=0)
    block_size: int | None = _engine(None, "Tokens in a block of the KV cache.", ge=1)
    prefill_budget: int | None = _engine(None, "Prompt tokens that one step computes at most.", ge=1)
    threads: int | None = _engine(None, "CPU threads of the engine; by default all.", ge=1)
    cache_dir: Path | None = _engine(None, "Where converted models are kept; by default ~/.cache/isogloss.")

    max_open_requests: int = _limit(1024, "Requests with a body that may be open at once.", ge=1)
    max_open_requests_per_key: int = _limit(256, "The same for one key.", ge=1)
    max_open_body_mib: int = _limit(
        1024, "MiB of bodies that open requests may have together; a body must fit in.", ge=1
    )
    max_open_media_mib: int = _limit(1024, "MiB of pictures, films and sound that may be held at once.", ge=1)
    media_timeout_s: float = _limit(120.0, "Seconds for one of them to be fetched.", gt=0)
    media_workers: int = _limit(2, "Processes that decode them.", ge=1)
    header_timeout_s: float = _limit(20.0, "Seconds for a request's header to arrive.", gt=0)
    body_timeout_s: float = _limit(60.0, "Seconds for a request's body to arrive.", gt=0)
    write_timeout_s: float = _limit(60.0, "Seconds a reader may be behind by a full buffer (64 KiB).", gt=0)
    keep_alive_s: int = _limit(5, "Seconds that an idle connection stays open.", ge=1)
    drain_timeout_s: float = _limit(30.0, "Seconds that running requests get to end after SIGTERM.", ge=0)

    @field_validator("dialects", "media_hosts", "api_keys", "adapter", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @property
    def unprefixed(self) -> str:
        """The dialect that is served without a prefix too, or `none`."""
        return self.default_dialect or ("nim" if "nim" in self.dialects else self.dialects[0])

    @field_validator("adapter")
    @classmethod
    def _check_adapters(cls, adapters: tuple[str, ...]) -> tuple[str, ...]:
        names = [name for name, sign, folder in (item.partition("=") for item in adapters) if name and folder]
        if len(names) < len(adapters):
            raise ValueError("must be written NAME=FOLDER")
        if len(set(names)) < len(names):
            raise ValueError("must have a name of its own each")
        return adapters

    @field_validator("port", mode="before")
    @classmethod
    def _explain_port(cls, value: object) -> object:
        if isinstance(value, str) and value.startswith("tcp://"):
            raise ValueError("is what Kubernetes sets for a service called isogloss; set enableServiceLinks: false")
        return value

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, keys: tuple[SecretStr, ...] | None) -> tuple[SecretStr, ...] | None:
        if keys is not None and not _usable(key.get_secret_value() for key in keys):
            raise ValueError("must hold one or more keys of visible ASCII characters")
        return keys

    def adapters(self) -> dict[str, Path]:
        """Folders of the adapters by name."""
        return {name: Path(folder) for name, _, folder in (item.partition("=") for item in self.adapter)}

    def keys(self) -> tuple[str, ...]:
        """All keys; none means that every caller is let in. Raises SettingsError for a file without any."""
        keys = [key.get_secret_value() for key in self.api_keys or ()]
        if self.api_key_file is not None:
            keys += _read_keys(self.api_key_file)
        return tuple(dict.fromkeys(keys))


def _usable(keys: Iterable[str]) -> bool:
    """Whether there is a key, and each can be sent as a header."""
    given = list(keys)
    return bool(given) and all(key and key.isascii() and key.isprintable() and " " not in key for key in given)


def _read_keys(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"api_key_file: {path} cannot be read: {type(error).__name__}") from None
    keys = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not _usable(keys):
        raise SettingsError(f"api_key_file: {path} must hold one or more keys of visible ASCII characters")
    return keys


def load_settings(given: Mapping[str, Any], file: Path | None = None) -> Settings:
    """Settings from what was given on the command line, the environment and a file. Raises SettingsError."""
    if file is not None and not file.is_file():
        raise SettingsError(f"{file} is no file")
    source = file or DEFAULT_FILE

    class Loaded(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, source)

    try:
        return Loaded(**given)
    except ValidationError as error:
        raise SettingsError("; ".join(_line(item) for item in error.errors(include_input=False))) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{source} is not TOML: {error}") from None


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Names in the environment that look like settings and are none, such as `ISOGLOSS_PROT`."""
    known = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
    ours = (name for name in environment if name.upper().startswith(ENV_PREFIX))
    return sorted(name for name in ours if name.upper() not in known and not name.upper().startswith(_SUITE_PREFIX))


def _line(item: Any) -> str:
    return f"{item['loc'][0]}: {item['msg'].removeprefix('Value error, ')}"
