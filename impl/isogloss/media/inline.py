"""Media that are written out in a request, in base64."""

from __future__ import annotations

import binascii
import re

from isogloss.media.api import MediaError, MediaRules
from isogloss.media.spool import Intake

_BLANKS = b" \t\r\n\v\f"
_DATA = re.compile(r"data:(?P<mime>[^;,]*);base64", re.IGNORECASE | re.ASCII)
_HEAD = 256
"""Characters before the comma of a `data:` address, at most."""


def data_payload(text: str, rules: MediaRules) -> str:
    """The base64 in a `data:` address. Raises MediaError: wrong_format for a type that is not of the kind, broken."""
    head, comma, payload = text[:_HEAD].partition(",")
    match = _DATA.fullmatch(head)
    if not comma or match is None:
        raise MediaError("broken")
    if match["mime"].lower() not in rules.formats.values():
        raise MediaError("wrong_format")
    return payload if len(text) <= _HEAD else text[len(head) + 1 :]


def is_bare(text: str, rules: MediaRules) -> bool:
    """Whether a reference is base64 with nothing around it, rather than a path."""
    return text.startswith(tuple(rules.bare.values()))


def decoded(text: str, intake: Intake) -> bytes:
    """What base64 stands for, not counted yet. Raises MediaError: too_large, broken.

    As in browsers, neither blanks in it nor the lack of all padding is a fault.
    """
    try:
        data = text.encode("ascii").translate(None, _BLANKS)
        if not data.endswith(b"="):
            data += b"=" * (-len(data) % 4)
        intake.expect(len(data) // 4 * 3 - data[-2:].count(b"="))
        return binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:  # UnicodeEncodeError and binascii.Error among them
        raise MediaError("broken") from error
