"""The program as it starts: whatever is slow to import comes later, so that Ctrl-C is met with a word at any time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell gives it."""
FAILED = 2
STDOUT, STDERR = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code, or leaves with that of argparse."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)


def _run(arguments: Sequence[str] | None) -> int:
    """Run the command, and see to it that what it said has arrived."""
    from isogloss_conformance.commands import run  # noqa: PLC0415

    try:
        code = run(arguments)
    except SystemExit:  # of argparse: help, or wrong use
        if _arrived():
            raise
        return FAILED
    return code if _arrived() else FAILED


def _arrived() -> bool:
    """Whether standard output took everything; a closed pipe and a full disk do not."""
    try:
        sys.stdout.flush()
    except OSError as error:
        hush()
        _complain(f"standard output cannot be written: {error.strerror}", FAILED)
        return False
    return True


def hush(descriptor: int = STDOUT) -> None:
    """Let an output lead nowhere. What is left of it would fail again when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _complain(text: str, code: int) -> int:
    print(f"isogloss-conformance: {text}", file=sys.stderr)  # noqa: T201 (the screen may not be there yet)
    return code
