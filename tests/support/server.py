"""Start a real server in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

KEY = "a-key-for-tests"
STARTS_WITHIN_S = 180


@dataclass(frozen=True)
class Server:
    url: str
    pid: int
    key: str | None = None

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)


@contextmanager
def serving(folder: Path, *arguments: str, key: str | None = None) -> Iterator[Server]:
    """A server on a port of its own choice, stopped at the end."""
    port_file, log = folder / "port", folder / "log"
    command = [sys.executable, "-m", "isogloss", "serve", "--port", "0", "--port-file", str(port_file), *arguments]
    environment = os.environ | ({"ISOGLOSS_API_KEYS": key} if key else {})
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        started = time.monotonic()
        while not port_file.exists():
            waiting = process.poll() is None and time.monotonic() - started < STARTS_WITHIN_S
            assert waiting, log.read_text()
            time.sleep(0.1)
        yield Server(f"http://127.0.0.1:{port_file.read_text().strip()}", process.pid, key)
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0, log.read_text()[-2000:]
