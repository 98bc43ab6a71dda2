"""Known deviations: checks that a named server fails, with the reason. Data, see `deviations.yaml`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

FILE = "deviations.yaml"


class DeviationsError(Exception):
    """The list of deviations is malformed. The text says where."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One check that one server is known to fail."""

    id: str
    server: str
    """Name of the server, compared without regard to case."""
    reason: str
    version: str | None = None
    """None for every version."""
    link: str | None = None

    def concerns(self, server: str, version: str) -> bool:
        """Whether it speaks of this server."""
        return self.server.lower() == server.lower() and self.version in (None, version)

    @property
    def text(self) -> str:
        """The reason, with the link behind it."""
        return f"{self.reason} ({self.link})" if self.link else self.reason


def listed() -> list[Deviation]:
    """The list that comes with the suite."""
    return parsed(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def parsed(text: str) -> list[Deviation]:
    """A list from YAML. Raises DeviationsError."""
    try:
        return [_deviation(entry) for entry in yaml.safe_load(text)]
    except (yaml.YAMLError, TypeError) as error:
        raise DeviationsError(f"the list of known deviations cannot be read: {error}") from None


def _deviation(entry: Any) -> Deviation:
    if not isinstance(entry, dict):
        raise TypeError(f"{entry!r} is no mapping")
    for name, value in entry.items():
        if not isinstance(value, str) and (value is not None or name not in ("version", "link")):
            raise TypeError(f"{name} must be a text: {value!r}")
    return Deviation(**entry)


def known(deviations: Iterable[Deviation], software: str) -> dict[str, str]:
    """Reasons by check for a server that calls itself `NAME/VERSION …` or `NAME`."""
    name, version = split(software)
    return {deviation.id: deviation.text for deviation in deviations if deviation.concerns(name, version)}


def split(software: str) -> tuple[str, str]:
    """Name and version from the text of a Server header; the version is empty if there is none."""
    name, _, rest = software.strip().partition("/")
    return name, rest.split(" ", 1)[0]
