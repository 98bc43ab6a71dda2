"""The command line, in process and as a program."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from isogloss.cli import main
from isogloss.settings import Settings

SERVE = ["serve", "--engine", "scripted", "--port", "0"]


@pytest.fixture(autouse=True)
def _empty_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def test_help_names_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "--help"])
    text = capsys.readouterr().out
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')} " in text
        assert f"ISOGLOSS_{name.upper()}]" in "".join(text.split())
    assert "Default: 8000." in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("isogloss 0.")


def test_documents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["documents", "list"]) == 0
    assert "nim\t" in capsys.readouterr().out
    assert main(["documents", "show", "nim"]) == 0
    assert '"openapi": "3.1.0"' in capsys.readouterr().out
    assert main(["documents", "ledger", "nim"]) == 0
    assert "nim/completions/top_p/maximum\tcore\tout_of_range\t422\t" in capsys.readouterr().out


def test_models_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ISOGLOSS_CACHE_DIR", str(tmp_path))
    made = tmp_path / "models" / "abc"
    made.mkdir(parents=True)
    (made / "config.json").touch()
    assert main(["models", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"converted\t{made}"


WRONG = {
    "unknown document": (["documents", "show", "nope"], "there is no document 'nope'"),
    "unknown model": (["models", "convert", "nope"], "'nope' is no model"),
    "bad setting": (["serve", "--port", "x"], "port: "),
    "no settings file": (["serve", "--config", "nope"], "nope is no file"),
    "unknown dialect": ([*SERVE, "--dialects", "nope"], "dialects: 'nope' is none of nim"),
    "default that is not served": ([*SERVE, "--default-dialect", "x"], "default_dialect: 'x' is not served"),
    "address of nobody": ([*SERVE, "--host", "203.0.113.1"], "cannot listen on 203.0.113.1:0: "),
}


@pytest.mark.parametrize(("arguments", "reason"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.err.startswith(f"isogloss: {reason}")
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--engine", "scripted", "--port", str(port)]) == 2
    assert capsys.readouterr().err == f"isogloss: cannot listen on 127.0.0.1:{port}: Address already in use\n"


HTTP = "connexion starlette uvicorn uvloop httptools orjson pydantic_settings prometheus_client llguidance numpy"
TORCH = "torch transformers accelerate tokenizers safetensors gguf filelock"
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

missing = set(sys.argv.pop(1).split())
sys.meta_path.insert(0, Missing())
from isogloss.cli import main
sys.exit(main())
"""


def _run_without(missing: str, arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, missing, *arguments.split()]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("arguments", ["--version", "documents list", "documents show acs", "documents ledger acs"])
def test_the_base_install_shows_documents(arguments: str) -> None:
    run = _run_without(f"{HTTP} {TORCH}", arguments)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


NEEDY = {
    "serve": (f"{HTTP} {TORCH}", "serve --port 3"),
    "help of serve": (f"{HTTP} {TORCH}", "serve --help"),
    "serve by torch": (TORCH, "serve --port 0"),
    "models list": (f"{HTTP} {TORCH}", "models list"),
    "models convert": (TORCH, "models convert smollm2"),
}


@pytest.mark.parametrize(("missing", "arguments"), NEEDY.values(), ids=NEEDY)
def test_an_extra_that_is_not_installed_is_named_in_one_line(missing: str, arguments: str) -> None:
    run = _run_without(missing, arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"isogloss {arguments.partition(' ')[0]} needs: pip install 'isogloss[serve]' (")
    assert run.stderr.count("\n") == 1


def test_a_module_of_ours_that_is_missing_is_a_bug() -> None:
    assert "Traceback" in _run_without("isogloss_api", "documents list").stderr


def test_variables_that_are_no_settings_are_warned_about(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ISOGLOSS_PROT", "1")
    monkeypatch.setenv("ISOGLOSS_CONFORMANCE_KEY", "k")
    assert main([*SERVE, "--host", "203.0.113.1"]) == 2
    assert caplog.messages[0] == "no setting goes by the name of ISOGLOSS_PROT in the environment"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`isogloss serve` with the scripted engine, and its root URL."""
    port_file = tmp_path / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "isogloss", *SERVE, "--port-file", str(port_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"ISOGLOSS_API_KEYS": "the-key"},
    )
    deadline = time.monotonic() + 30
    while not port_file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    yield process, f"http://127.0.0.1:{port_file.read_text().strip()}"
    process.kill()
    process.wait()


def test_serve_until_sigterm(program: tuple[subprocess.Popen[str], str]) -> None:
    process, url = program
    body = {"model": "scripted", "prompt": "hi", "max_tokens": 3}
    with httpx.Client(base_url=url, headers={"Authorization": "Bearer the-key"}) as client:
        assert client.post("/v1/completions", json=body).json()["usage"]["completion_tokens"] == 3
        script = base64.b64encode(b'{"tokens": ["a", "b", "c"], "delay_ms_each": 300}').decode()
        slow = {"X-Isogloss-Script": script}
        with client.stream("POST", "/nim/v1/completions", json=body | {"stream": True}, headers=slow) as answer:
            process.send_signal(signal.SIGTERM)
            lines = [line for line in answer.iter_lines() if line]
            assert "error" not in lines[-2]
            assert lines[-1] == "data: [DONE]"
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert f"isogloss serves nim on {url}/nim/v1" in output
    assert "model scripted, engine scripted, ready in" in output
    assert output.count("isogloss.access request") == 2
    assert "Traceback" not in output
    assert "the-key" not in output
