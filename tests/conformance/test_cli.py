"""The program: exit codes, reports, replay, compare."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from isogloss_conformance import commands
from isogloss_conformance.cli import main
from isogloss_conformance.results import Status
from isogloss_conformance.runner import Runner
from isogloss_conformance.session import Session
from support.server import KEY, Server


def run(server: Server, dialect: str, *options: str, path: str | None = None) -> int:
    return main(["run", "--base-url", f"{server.url}/{path or dialect}", "--dialect", dialect, *options])


def test_run_writes_all_reports(scripted: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scripted, "nim", "--only", "nim/completions/n/", "--report-dir", str(tmp_path)) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"nim.jsonl", "nim.html", "nim.xml", "nim.badge.json"}
    assert "0 unprovable here" in capsys.readouterr().out


def test_another_dialect_fails_and_is_replayed(scripted: Server, tmp_path: Path) -> None:
    options = ("--only", "atoma/completions/n/", "--jobs", "2", "--report-dir", str(tmp_path))
    assert run(scripted, "atoma", *options, path="nim") == 1
    report = tmp_path / "atoma.jsonl"
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert lines[-1]["counts"][Status.FAIL] > 0
    assert main(["replay", str(report)]) == 1
    assert main(["replay", str(report), "--base-url", f"{scripted.url}/atoma"]) == 0


def test_compare_two_servers(scripted: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, path in (("a", "atoma"), ("b", "nim")):
        run(scripted, "atoma", "--only", "atoma/completions/n/", "--report-dir", str(tmp_path / folder), path=path)
    left, right = str(tmp_path / "a" / "atoma.jsonl"), str(tmp_path / "b" / "atoma.jsonl")
    assert main(["compare", left, left]) == 0
    capsys.readouterr()
    assert main(["compare", left, right]) == 1
    assert "pass → fail  atoma/completions/n/" in capsys.readouterr().out


def test_no_key_in_any_report(narrow: Server, tmp_path: Path) -> None:
    secret = "another-secret"
    options = ("--api-key", KEY, "--header", f"X-Other: {secret}", "--report-dir", str(tmp_path))
    assert run(narrow, "nim", "--only", "nim/completions/n/", *options) == 0
    for file in tmp_path.iterdir():
        assert KEY not in file.read_text()
        assert secret not in file.read_text()
    assert "api_key" in (tmp_path / "nim.jsonl").read_text()


def test_strict_counts_what_is_not_there(scripted: Server) -> None:
    only = ("--only", "atoma/completions/suffix")
    assert run(scripted, "atoma", *only) == 0
    assert run(scripted, "atoma", *only, "--strict") == 1


def test_level_core_leaves_out_what_was_inferred(scripted: Server, tmp_path: Path) -> None:
    options = ("--only", "nim/completions/top_p", "--level", "core", "--report-dir", str(tmp_path))
    assert run(scripted, "nim", *options) == 0
    looked = [json.loads(line) for line in (tmp_path / "nim.jsonl").read_text().splitlines()]
    levels = {line["level"] for line in looked if line["kind"] == "result" and line["status"] != "disabled"}
    assert levels == {"core"}


def test_dry_run_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("run --base-url http://127.0.0.1:9 --dialect nim --dry-run --step faults".split()) == 0
    listed = capsys.readouterr().out.splitlines()
    assert "faults    extended nim/completions/fault/malformed_json" in listed


WRONG_USE = (
    ["--set", "x"],
    ["--set", "maxIterTimes=y"],
    ["--set", "noSuchLimit=1"],
    ["--header", "x"],
    ["--header", "X Y: z"],
    ["--header", "X: ä"],
    ["--api-key", "ä"],
    ["--ca", "/nowhere"],
    ["--features", "no-such-feature"],
    ["--only", "nim/no-such-check"],
    ["--level", "core", "--step", "transport"],
    ["--report-dir", "/dev/null/reports"],
    [],
)


@pytest.mark.parametrize("options", WRONG_USE, ids=str)
def test_wrong_use_is_2(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--base-url", "http://127.0.0.1:9", "--dialect", "nim", *options]) == 2
    assert capsys.readouterr().err.startswith("isogloss-conformance: ")


@pytest.mark.parametrize(
    "option", ["--timeout=0", "--timeout=-1", "--timeout=nan", "--max-total-tokens=0", "--jobs=0", "--examples=-1"]
)
def test_amounts_out_of_range_are_2(option: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--base-url", "http://127.0.0.1:9", "--dialect", "nim", option])


def test_a_replay_is_made_under_the_conditions_of_its_run(
    scripted: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--only", "atoma/completions/n/", "--flood", "7", "--features", "suffix", "--report-dir", str(tmp_path))
    assert run(scripted, "atoma", *options, path="nim") == 1
    made: list[Session] = []

    class Seen(Runner):
        def __init__(self, session: Session, **others: Any) -> None:
            made.append(session)
            super().__init__(session, **others)

    monkeypatch.setattr(commands, "Runner", Seen)
    assert main(["replay", str(tmp_path / "atoma.jsonl"), "--flood", "9", "--set", "maxIterTimes=5"]) == 1
    assert made[-1].options.flood == 9
    assert made[-1].options.settings == {"maxIterTimes": 5}
    assert made[-1].facts.features == {"suffix"}


def test_the_suite_runs_without_torch_and_server() -> None:
    code = (
        "import sys; import isogloss_conformance.commands; "
        "assert not {'torch', 'transformers', 'connexion', 'isogloss'} & sys.modules.keys(), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
