"""llama.cpp's server: `python -m peers.llama_cpp`, from `tests`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from peers.peer import CONTEXT_LENGTH, ENVIRONMENTS, MODEL, PORT, Peer, gguf, main

CALLS = 4
"""Requests at once; each gets its share of the context."""
LONGEST_UNASKED = 64
"""Without it a request that names no length runs until the model stops, which a small one may never do."""


def peer() -> Peer:
    """The server on the quantised weights."""
    server = ENVIRONMENTS / "llama-cpp/build/bin/llama-server"
    command = f"{server} --alias {MODEL} --host 127.0.0.1 --port {PORT} --threads 1 --parallel {CALLS} --no-ui"
    command += f" --ctx-size {CALLS * CONTEXT_LENGTH} --predict {LONGEST_UNASKED}"
    return Peer("llama.cpp", version(server), (*command.split(), "--model", str(gguf())))


def version(server: Path) -> str:
    """As its releases are named: `b` and the number of the build."""
    done = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)
    (build,) = re.findall(r"\(build (\d+),", done.stdout + done.stderr)
    return f"b{build}"


if __name__ == "__main__":
    sys.exit(main(peer()))
