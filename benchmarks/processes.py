"""Servers as processes: started, waited for, read from outside, always stopped."""

from __future__ import annotations

import ctypes
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HOST = "127.0.0.1"
_POLL_S = 0.005
_STOP_S = 20.0
_LOG_TAIL = 2000
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def serve_command(engine: str, *options: str) -> list[str]:
    """Our server on an engine. Every measured server logs warnings only."""
    serve = [sys.executable, "-m", "isogloss", "serve", "--engine", engine]
    return [*serve, "--host", HOST, "--port", "0", "--log-level", "warning", *options]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is ready."""

    pid: int
    port: int
    startup_s: float
    """From the start of the process to the first 200 for `/v1/health/ready`."""

    def cpu_s(self) -> float:
        """CPU time of the whole process so far, user and system, in seconds."""
        clock = ctypes.c_int()
        error = ctypes.CDLL(None).clock_getcpuclockid(self.pid, ctypes.byref(clock))
        if error:
            raise OSError(error, os.strerror(error))
        return time.clock_gettime(clock.value)


@contextmanager
def running(command: Sequence[str], timeout_s: float = 120.0) -> Iterator[Server]:
    """Run a server that takes `--port-file PATH` and writes its port there, until the block ends.

    Raises RuntimeError if it isn't ready in time. Whatever is raised inside gets a note with the end of its log.
    """
    with TemporaryDirectory(prefix="isogloss-bench-") as folder:
        port_file, log = Path(folder, "port"), Path(folder, "log")
        begun = time.perf_counter()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--port-file", str(port_file)],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | _OFFLINE,
            )
        try:
            port = _wait(process, port_file, begun + timeout_s)
            yield Server(process.pid, port, time.perf_counter() - begun)
        except Exception as error:
            error.add_note(f"exit status {process.poll()}, log:\n{log.read_text(errors='replace')[-_LOG_TAIL:]}")
            raise
        finally:
            _stop(process)


def _wait(process: subprocess.Popen[bytes], port_file: Path, deadline: float) -> int:
    while time.perf_counter() < deadline and process.poll() is None:
        port = port_file.read_text().strip() if port_file.exists() else ""
        if port and _is_ready(int(port)):
            return int(port)
        time.sleep(_POLL_S)
    raise RuntimeError("the server did not get ready")


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/v1/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
