"""llama.cpp's server: `python -m peers.llama_cpp`, from `tests`."""

from __future__ import annotations

import sys

from peers.peer import CONTEXT_LENGTH, ENVIRONMENTS, MODEL, PORT, Peer, gguf, main

VERSION = "b11434"
CALLS = 4
"""Requests at once; each gets its share of the context."""
LONGEST_UNASKED = 64
"""Without it a request that names no length runs until the model stops, which a small one may never do."""


def peer() -> Peer:
    """The server on the quantised weights."""
    server = str(ENVIRONMENTS / "llama-cpp/build/bin/llama-server")
    command = f"{server} --alias {MODEL} --host 127.0.0.1 --port {PORT} --threads 1 --parallel {CALLS} --no-ui"
    command += f" --ctx-size {CALLS * CONTEXT_LENGTH} --predict {LONGEST_UNASKED}"
    return Peer("llama.cpp", VERSION, (*command.split(), "--model", str(gguf())))


if __name__ == "__main__":
    sys.exit(main(peer()))
