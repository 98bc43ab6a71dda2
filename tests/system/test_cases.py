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
    "best_of": {"H008"},
    "guided": {"H155", "H157", "H158", "H159"},
}
"""Cases of nim whose fields come later, by the feature they wait for."""

pytestmark = pytest.mark.skipif(not (CASES / "run_cases.py").is_file(), reason="the recorded cases are not here")


def run(server: Server, capabilities: str, folder: Path, *options: str) -> dict[str, list[str]]:
    """Ids by result."""
    report = folder / "cases.jsonl"
    command = [
        *(sys.executable, "run_cases.py", "handed.jsonl", "--base-url", server.url, "--dialect", "nim"),
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


def waiting() -> set[str]:
    return set().union(*WAITING.values())


def test_scripted(scripted: Server, tmp_path: Path) -> None:
    found = run(scripted, "scripted,metrics,canary", tmp_path)
    assert set(found["fail"]) == waiting()
    assert len(found["pass"]) >= 90


def test_with_a_key(keyed: Server, tmp_path: Path) -> None:
    found = run(keyed, "auth", tmp_path, "--only", "auth,model,errors,http")
    assert found["fail"] == []
    assert len(found["pass"]) >= 8


@pytest.mark.model
def test_real_model(real: Server, tmp_path: Path) -> None:
    found = run(real, "metrics,canary", tmp_path)
    assert set(found["fail"]) == waiting()
    assert len(found["pass"]) >= 75
