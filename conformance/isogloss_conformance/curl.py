"""Command lines for curl that repeat a request, byte for byte, in any POSIX shell."""

from __future__ import annotations

import base64
import gzip
import re
import shlex
from collections.abc import Iterable, Mapping

LONGEST_PLAIN = 2000
"""Bytes of a body that stand in the command as they are."""
LONGEST_PACKED = 2**16
"""Characters of a packed body; a longer one is left out."""
_LITERAL = {"-g": re.compile(r"[][{}]"), "--path-as-is": re.compile(r"/\.")}
"""Options that keep curl from reading more into an address than stands there, and what it would read something into."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
"""What does not survive a terminal."""


def command(method: str, url: str, headers: Mapping[str, str], body: bytes, options: Iterable[str] = ()) -> str:
    """One line. Headers' values may refer to variables of the shell as `$NAME`, where nothing else is special."""
    literal = [option for option, sign in _LITERAL.items() if sign.search(url)]
    head = ["curl", "-sS", "-i", *literal, "-X", method, shlex.quote(url), *options]
    named = {name.lower() for name in headers}
    if body and "content-type" not in named:  # curl would make one up
        head += ["-H", "'Content-Type:'"]
    for name, value in headers.items():
        head += ["-H", _header(name, value)]
    before, data = _body(body, needs_length=method == "POST")
    return " ".join([*before, *head, *data])


def _header(name: str, value: str) -> str:
    if not value:
        return shlex.quote(f"{name};")
    return f'"{name}: {value}"' if "$" in value else shlex.quote(f"{name}: {value}")


def _body(body: bytes, *, needs_length: bool) -> tuple[list[str], list[str]]:
    """What stands before curl and what stands among its options."""
    if not body:
        return [], ["--data-raw", "''"] if needs_length else []
    plain = _plain(body)
    if plain is not None:
        return [], ["--data-raw", shlex.quote(plain)]
    coded, steps = base64.b64encode(body).decode(), ["base64 -d"]
    if len(body) > LONGEST_PLAIN:
        coded, steps = base64.b64encode(gzip.compress(body, mtime=0)).decode(), [*steps, "gunzip"]
    if len(coded) > LONGEST_PACKED:
        coded = f"…{len(body)} bytes…"
    return [f"echo {coded} | {' | '.join(steps)} |"], ["--data-binary", "@-"]


def _plain(body: bytes) -> str | None:
    """A short body as text, if it is one that can be copied."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return text if len(body) <= LONGEST_PLAIN and not _CONTROL.search(text) else None
