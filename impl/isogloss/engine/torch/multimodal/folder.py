"""Settings of a model's processor, as its folder has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Settings = Mapping[str, Any]


def read_settings(folder: Path, file: str, part: str) -> Settings:
    """Settings of one part, from a file of their own or from the one of the whole processor; empty without either."""
    whole = _read(folder / "processor_config.json")
    settings = whole.get(part) or _read(folder / file)
    return settings if isinstance(settings, dict) else {}


def read_chat_template(folder: Path) -> str | None:
    """The processor's template where it is written the old way. A `chat_template.jinja` is the tokenizer's as well."""
    template = _read(folder / "chat_template.json").get("chat_template")
    return template if isinstance(template, str) else None


def has_chat_template_file(folder: Path) -> bool:
    """Whether there is a template that a tokenizer reads for itself before all others."""
    return (folder / "chat_template.jinja").is_file()


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}
