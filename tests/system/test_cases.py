"""Recorded cases from public bug reports, where the folder that holds them lies beside the checkout."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.server import Server
from support.tiny_models import tiny_qwen2_vl

CASES = Path(__file__).parents[3] / "shared" / "cases"
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


@pytest.mark.parametrize(("dialect", "least"), [("nim", 90), ("atoma", 50), ("acs", 85), ("mindie", 75)])
def test_scripted(scripted: Server, tmp_path: Path, dialect: str, least: int) -> None:
    found = run(scripted, dialect, "scripted,tools,metrics,canary", tmp_path)
    assert found["fail"] == []
    assert len(found["pass"]) >= least


@pytest.mark.parametrize(("dialect", "least"), [("nim", 8), ("atoma", 8), ("acs", 8), ("mindie", 4)])
def test_with_a_key(keyed: Server, tmp_path: Path, dialect: str, least: int) -> None:
    found = run(keyed, dialect, "auth", tmp_path, "--only", "auth,model,errors,http")
    assert found["fail"] == []
    assert len(found["pass"]) >= least


def test_comments_keep_a_slow_stream_alive(scripted: Server, tmp_path: Path) -> None:
    found = run(scripted, "acs", "scripted,keepalive", tmp_path, "--only", "H028")
    assert found["pass"] == ["H028"]


NEED_TOOLS = {"H116", "H117", "H119", "H127"}
"""Of the cases about conversations, those that name functions."""


@pytest.mark.parametrize(("engine", "capabilities"), [("scripted", "scripted,"), ("qwen2_vl", "")])
def test_media(start: Callable[..., Any], tmp_path: Path, engine: str, capabilities: str) -> None:
    media, outside = tmp_path / "media", tmp_path / "outside"
    media.mkdir()
    outside.mkdir()
    Image.new("RGB", (16, 16), (90, 120, 30)).save(outside / "secret.png")
    (media / "link.png").symlink_to(outside / "secret.png")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{sock.getsockname()[1]}"
    serving = ["--engine", "scripted"] if engine == "scripted" else ["--model", str(tiny_qwen2_vl(tmp_path / "model"))]
    options = ["--only", "media,chat", "--outside-dir", str(outside), "--link-in-media-dir", str(media / "link")]
    options += ["--allowed-host", host, "--serve-redirect"]
    with start(*serving, "--media-folder", str(media), "--media-hosts", host) as server:
        found = run(server, "mindie", f"{capabilities}multimodal,metrics,canary", tmp_path, *options)
    assert found["fail"] == []
    assert set(found["skip"]) == NEED_TOOLS
    assert len(found["pass"]) == 25


@pytest.mark.model
@pytest.mark.parametrize(("dialect", "least"), [("nim", 75), ("atoma", 40), ("acs", 65), ("mindie", 45)])
def test_real_model(real: Server, tmp_path: Path, dialect: str, least: int) -> None:
    cases = [json.loads(line)["id"] for line in (CASES / "handed.jsonl").read_text().splitlines()]
    cases.remove(FILLS_THE_CONTEXT)
    found = run(real, dialect, "metrics,canary", tmp_path, "--only", ",".join(cases))
    assert found["fail"] == []
    assert len(found["pass"]) >= least


@pytest.mark.model
def test_functions_of_a_real_model(calling: Server, tmp_path: Path) -> None:
    cases = [json.loads(line) for line in (CASES / "handed.jsonl").read_text().splitlines()]
    ids = [case["id"] for case in cases if "tools" in case["request"] or case["class"].startswith("tools.")]
    found = run(calling, "mindie", "tools", tmp_path, "--only", ",".join(ids))
    assert found["fail"] == []
    assert len(found["pass"]) >= 18
