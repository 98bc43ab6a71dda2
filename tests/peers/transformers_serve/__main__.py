"""The server of transformers: `python -m peers.transformers_serve`, from `tests`."""

from __future__ import annotations

import sys

from peers.peer import ENVIRONMENTS, MODEL, PORT, Peer, main, short_checkpoint

VERSION = "5.24.0"
OPTIONS = ("--timeout", "240", "--examples", "10")
"""It has no limit to what a request may ask for, and goes on with one whose caller is gone: whoever gives up early
blames what comes next."""


def peer() -> Peer:
    """The server on the converted checkpoint, held to that model."""
    folder = ENVIRONMENTS / "transformers-serve"
    command = f"{folder}/bin/transformers serve {MODEL} --host 127.0.0.1 --port {PORT} --device cpu"
    environment = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return Peer("transformers-serve", VERSION, tuple(command.split()), environment, short_checkpoint(folder), OPTIONS)


if __name__ == "__main__":
    sys.exit(main(peer()))
