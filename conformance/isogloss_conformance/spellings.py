"""Other ways to write a path. A guard that compares texts may let some of them pass, and a router take them all."""

from __future__ import annotations

from collections.abc import Iterator


def spellings(prefix: str, path: str) -> Iterator[str]:
    """Targets below a prefix that a lenient server may take for a path."""
    whole = prefix + path
    folder, _, last = whole.rpartition("/")
    yield "/" + whole
    yield f"{folder}//{last}"
    yield f"{whole}/"
    yield f"{folder}/./{last}"
    yield f"{folder}/x/../{last}"
    yield f"{folder}/%{ord(last[0]):02x}{last[1:]}"
    yield f"{folder}/{last.upper()}"
    yield f"{whole};x"
    yield prefix + path.removeprefix("/v1")
    yield f"{prefix}/invocations"  # where clouds look for a model's handler
