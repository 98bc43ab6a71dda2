"""Which of the spellings of a medium a request has used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from isogloss.media.address import Address, parse_address
from isogloss.media.api import Inline, MediaError, MediaRules, MediaSource
from isogloss.media.inline import data_payload, is_bare

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE | re.ASCII)
_FILE = "file://"


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes themselves, in base64."""

    base64: str


@dataclass(frozen=True, slots=True)
class LocalPath:
    """A path on this machine, not looked at yet."""

    path: str


def place(source: MediaSource, rules: MediaRules) -> Encoded | LocalPath | Address:
    """Where a medium is. Raises MediaError: not_allowed for an address that is not read, or what `data:` raises."""
    if isinstance(source, Inline):
        return Encoded(source.base64)
    text = source.text
    if is_bare(text, rules):
        return Encoded(text)
    match = _SCHEME.match(text)
    if match is None:
        return LocalPath(text)
    return _with_scheme(match[1].lower(), text, rules)


def _with_scheme(scheme: str, text: str, rules: MediaRules) -> Encoded | LocalPath | Address:
    if scheme == "data":
        return Encoded(data_payload(text, rules))
    if scheme in ("http", "https"):
        return parse_address(text)
    if not text[: len(_FILE)].lower() == _FILE:
        raise MediaError("not_allowed")
    # What follows is a path even where a host could stand: `file://demo.png` lies in the media folder.
    return LocalPath(unquote(text[len(_FILE) :]))
