"""The built wheel in an empty environment: documents inside, judge at work, no torch."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """
import importlib.util, isogloss_api, isogloss_conformance.fuzz
from isogloss_spec import Judge
judge = Judge(isogloss_api.document("nim"), "create_completion")
print(judge.check(b'{"model": "m", "prompt": "p"}').eff["max_tokens"])
print(importlib.util.find_spec("torch"), importlib.util.find_spec("connexion"))
"""


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


def test_what_is_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"isogloss", "isogloss_api", "isogloss_conformance", "isogloss_spec"}
    for wanted in ("isogloss_api/nim/document.json", "isogloss_spec/extensions.schema.json"):
        assert wanted in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "requirements.lock"), str(wheel))
    assert run(python, "-c", PROGRAM).split() == ["16", "None", "None"]
