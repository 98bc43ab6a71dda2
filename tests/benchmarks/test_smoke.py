"""Benchmarks run and report; how fast anything is, no test says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("benchmarks") / "http.json"
    options = f"--rounds 2 --requests 20 --warmup 2 --streams 3 --connections 2 --json {file}"
    subprocess.run([sys.executable, "-m", "benchmarks", "http", *options.split()], cwd=ROOT, check=True, timeout=120)
    return json.loads(file.read_text())


def test_every_server_is_measured_under_each_load(report: Any) -> None:
    servers = ["starlette + pydantic", "starlette, same checks", "starlette, same checks and engine", "isogloss"]
    assert [[row["name"] for row in section["rows"]] for section in report["sections"]] == [servers, servers]


def test_every_figure_is_positive_and_ordered(report: Any) -> None:
    figures = [
        figure for section in report["sections"] for row in section["rows"] for figure in row["figures"].values()
    ]
    assert len(figures) == 2 * 4 * 3
    assert all(0 < figure["low"] <= figure["median"] <= figure["high"] for figure in figures)


def test_ratios_are_of_our_server(report: Any) -> None:
    for section in report["sections"]:
        ours = section["rows"][-1]["figures"]["isogloss/this"]
        assert ours == {"median": 1, "low": 1, "high": 1}


def test_the_report_says_how_it_was_made(report: Any) -> None:
    assert report["kind"] == "http"
    assert report["command"].startswith("python -m benchmarks http --rounds 2 ")
    assert report["settings"]["requests"] == 20
    assert {"cpu", "cpus", "python", "uvicorn"} <= report["machine"].keys()
