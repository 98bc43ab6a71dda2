"""How the program ends early: Ctrl-C, closed pipes, full disks; and narrow terminals."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from isogloss_conformance import commands
from isogloss_conformance.cli import FAILED, INTERRUPTED, main
from isogloss_conformance.reports.page import page
from isogloss_conformance.reports.reading import read
from isogloss_conformance.results import Result
from isogloss_conformance.runner import Runner
from support.server import Server

PROGRAM = (sys.executable, "-m", "isogloss_conformance")
DRY = (*PROGRAM, *"run --base-url http://127.0.0.1:9 --dialect nim --dry-run".split())


def smoke(server: Server, *options: str) -> int:
    return main(["run", "--base-url", f"{server.url}/nim", "--dialect", "nim", "--step", "smoke", *options])


class Interrupted(Runner):
    def run(self) -> Iterator[Result]:
        made = super().run()
        yield next(made)
        yield next(made)
        raise KeyboardInterrupt


def test_an_interrupted_run_writes_what_it_has(
    scripted: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "Runner", Interrupted)
    assert smoke(scripted, "--report-dir", str(tmp_path), "--stable") == INTERRUPTED
    assert "interrupted: " in capsys.readouterr().err
    made = read(tmp_path / "nim.jsonl")
    assert made.interrupted
    assert not made.ledger.missing
    assert sum(result.got != "interrupted" for result in made.results) == 2
    assert "The run was interrupted." in page(made)
    assert json.loads((tmp_path / "nim.badge.json").read_text())["message"].endswith(", interrupted")


def test_a_whole_run_does_not_speak_of_it(scripted: Server, tmp_path: Path) -> None:
    assert smoke(scripted, "--report-dir", str(tmp_path)) == 0
    assert "interrupted" not in (tmp_path / "nim.jsonl").read_text()


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("after_s", [0.1, 0.4, 3.0])
def test_ctrl_c_at_the_start_is_met_with_a_word(silent: str, after_s: float) -> None:
    """It comes while modules are imported, and while the first answer is waited for."""
    code = (
        "import os, signal, sys, threading; from isogloss_conformance.cli import main; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"threading.Timer({after_s}, os.kill, (os.getpid(), signal.SIGINT)).start(); "
        f"sys.exit(main('run --base-url {silent} --dialect nim'.split()))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (INTERRUPTED, "isogloss-conformance: interrupted\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_takes_one_line(unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(DRY, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert ended.returncode == FAILED
    assert ended.stderr == f"isogloss-conformance: standard output cannot be written: {os.strerror(errno.ENOSPC)}\n"


def test_a_closed_pipe_takes_one_line() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(DRY, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert ended.returncode == FAILED
    assert ended.stderr == f"isogloss-conformance: standard output cannot be written: {os.strerror(errno.EPIPE)}\n"


def test_a_report_that_does_not_fit_takes_one_line(
    scripted: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nim.jsonl").symlink_to("/dev/full")
    assert smoke(scripted, "--report-dir", str(tmp_path)) == FAILED
    assert f"reports cannot be written to {tmp_path}" in capsys.readouterr().err.replace("\n", "")


@pytest.mark.parametrize(("columns", "line"), [("100", "smoke      4 "), ("30", "smoke: 4 pass")])
def test_counts_are_readable_in_any_width(
    scripted: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, line: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert smoke(scripted) == 0
    shown = capsys.readouterr().out.splitlines()
    assert any(found.startswith(line) for found in shown)
    assert ("disabled" in shown[0]) is (columns == "100")
