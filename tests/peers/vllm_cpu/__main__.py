"""vLLM on a CPU: `python -m peers.vllm_cpu`, from `tests`."""

from __future__ import annotations

import sys

from peers.peer import CONTEXT_LENGTH, ENVIRONMENTS, MODEL, PORT, Peer, checkpoint, installed, main

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}


def peer() -> Peer:
    """The server on the converted checkpoint, without compilation: what is answered is asked here, not how fast."""
    folder = ENVIRONMENTS / "vllm-cpu"
    command = f"{folder}/bin/vllm serve {checkpoint()} --served-model-name {MODEL} --host 127.0.0.1 --port {PORT}"
    command += f" --dtype bfloat16 --max-model-len {CONTEXT_LENGTH} --max-num-seqs 8 --enforce-eager"
    return Peer("vllm-cpu", installed(folder, "vllm-cpu"), tuple(command.split()), ENVIRONMENT)


if __name__ == "__main__":
    sys.exit(main(peer()))
