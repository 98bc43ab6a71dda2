"""The server of transformers: `python -m peers.transformers_serve`, from `tests`."""

from __future__ import annotations

import sys

from peers.peer import ENVIRONMENTS, MODEL, PORT, Peer, installed, main, short_checkpoint

OPTIONS = ("--examples", "10")
"""A request that names no length makes it generate up to 1024 tokens, one request after the other."""


def peer() -> Peer:
    """The server on the converted checkpoint, held to that model."""
    folder = ENVIRONMENTS / "transformers-serve"
    command = f"{folder}/bin/transformers serve {MODEL} --host 127.0.0.1 --port {PORT} --device cpu"
    environment = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    version = installed(folder, "transformers")
    return Peer("transformers-serve", version, tuple(command.split()), environment, short_checkpoint(folder), OPTIONS)


if __name__ == "__main__":
    sys.exit(main(peer()))
