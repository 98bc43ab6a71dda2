"""Recorded cases from public bug reports, where the folder that holds them lies beside the checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.server import Server

CASES = Path(__file__).parents[3] / "shared" / "cases"
WAITING = {
    "nim": {},
    "atoma": {},
    "acs": {},
    "mindie": {},
}
"""Dialect to cases whose fields come later, by the feature they wait for."""
FILLS_THE_CONTEXT = "H069"
"""Asks ACS for as many tokens as the context leaves, which takes a real model longer than the runner waits."""

pytestmark = pytest.mark.skipif(not (CASES / "run_cases.py").is_file(), reason="the recorded cases are not here")


def run(server: Server, dialect: str, capabilities: str, folder: Path, *options: str) -> dict[str, list[str]]:
    """Ids by result."""
    report = folder / "cases.jsonl"
    command = [
        *(sys.executable, "run_cases.py", "handed.jsonl", "--base-url", server.url, "--dialect", dialect),
        *("--capability", capabilities, "--json", str(report), *options),
    ]
    if server.key:
        command += ["--api-key", server.key]
    done = subprocess.run(command, check=False, cwd=CASES, capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, list[str]] = {"pass": [], "fail": [], "skip": []}
    for line in report.read_text().splitlines():
        result = json.loads(line)
        found[result["result"]].append(result["id"])
    return found


def waiting(dialect: str) -> set[str]:
    return set().union(*WAITING[dialect].values())


@pytest.mark.parametrize(("dialect", "least"), [("nim", 90), ("atoma", 50), ("acs", 85), ("mindie", 50)])
def test_scripted(scripted: Server, tmp_path: Path, dialect: str, least: int) -> None:
    found = run(scripted, dialect, "scripted,metrics,canary", tmp_path)
    assert set(found["fail"]) == waiting(dialect)
    assert len(found["pass"]) >= least


@pytest.mark.parametrize(("dialect", "least"), [("nim", 8), ("atoma", 8), ("acs", 8), ("mindie", 4)])
def test_with_a_key(keyed: Server, tmp_path: Path, dialect: str, least: int) -> None:
    found = run(keyed, dialect, "auth", tmp_path, "--only", "auth,model,errors,http")
    assert found["fail"] == []
    assert len(found["pass"]) >= least


def test_comments_keep_a_slow_stream_alive(scripted: Server, tmp_path: Path) -> None:
    found = run(scripted, "acs", "scripted,keepalive", tmp_path, "--only", "H028")
    assert found["pass"] == ["H028"]


@pytest.mark.model
@pytest.mark.parametrize(("dialect", "least"), [("nim", 75), ("atoma", 40), ("acs", 65), ("mindie", 45)])
def test_real_model(real: Server, tmp_path: Path, dialect: str, least: int) -> None:
    cases = [json.loads(line)["id"] for line in (CASES / "handed.jsonl").read_text().splitlines()]
    cases.remove(FILLS_THE_CONTEXT)
    found = run(real, dialect, "metrics,canary", tmp_path, "--only", ",".join(cases))
    assert set(found["fail"]) == waiting(dialect) - set(found["skip"])
    assert len(found["pass"]) >= least
