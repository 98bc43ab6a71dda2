"""Where settings come from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from isogloss.dialects.registry import DIALECTS
from isogloss.settings import Settings, SettingsError, load_settings, unknown_variables


@pytest.fixture(autouse=True)
def _empty_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"ISOGLOSS_{name.upper()}", raising=False)


def test_defaults() -> None:
    settings = load_settings({})
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.dialects == tuple(name for name in DIALECTS if name != "service")
    assert settings.keys() == ()


def test_order_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("isogloss.toml").write_text('port = 1\nhost = "file"\nmodel = "file"\n')
    monkeypatch.setenv("ISOGLOSS_PORT", "2")
    monkeypatch.setenv("ISOGLOSS_HOST", "env")
    settings = load_settings({"port": "3"})
    assert (settings.port, settings.host, settings.model, settings.device) == (3, "env", "file", "auto")


def test_a_named_file_takes_the_place_of_the_default_one(tmp_path: Path) -> None:
    Path("isogloss.toml").write_text("port = 1\n")
    other = tmp_path / "other.toml"
    other.write_text('dialects = ["nim"]\napi_keys = ["a", "b"]\n')
    settings = load_settings({}, other)
    assert settings.port == 8000
    assert settings.keys() == ("a", "b")


def test_lists_are_written_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOGLOSS_API_KEYS", "a, b,a")
    settings = load_settings({"dialects": "nim, mindie"})
    assert settings.dialects == ("nim", "mindie")
    assert settings.keys() == ("a", "b")


@pytest.mark.parametrize(
    ("given", "unprefixed"),
    [
        ({}, "nim"),
        ({"dialects": "mindie,nim"}, "nim"),
        ({"dialects": "mindie,acs"}, "mindie"),
        ({"default_dialect": "acs"}, "acs"),
        ({"dialects": "mindie", "default_dialect": "none"}, "none"),
    ],
)
def test_one_dialect_is_served_without_a_prefix_too(given: dict[str, str], unprefixed: str) -> None:
    assert load_settings(given).unprefixed == unprefixed


def test_keys_of_a_file_are_added(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# ours\n\none\n two \n")
    assert load_settings({"api_key_file": str(file), "api_keys": "zero"}).keys() == ("zero", "one", "two")


@pytest.mark.parametrize("content", ["", "\n# nothing\n", "a b\n", "schlüssel\n"])
def test_a_key_file_without_usable_keys_never_opens_the_server(tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match="api_key_file"):
        load_settings({"api_key_file": str(file)}).keys()


def test_a_missing_key_file_never_opens_the_server() -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings({"api_key_file": "nope"}).keys()


@pytest.mark.parametrize("value", ["", ",", "a,,b", "a b"])
def test_keys_that_are_no_keys_never_open_the_server(value: str) -> None:
    with pytest.raises(SettingsError, match=r"^api_keys: must hold"):
        load_settings({"api_keys": value})


def test_keys_are_not_shown() -> None:
    settings = load_settings({"api_keys": "very-private"})
    assert "very-private" not in repr(settings)
    with pytest.raises(SettingsError) as caught:
        load_settings({"api_keys": "very private"})
    assert "very" not in str(caught.value)


WRONG = [
    ("port", "70000"),
    ("port", "x"),
    ("engine", "magic"),
    ("keep_alive_s", "0"),
    ("max_num_seqs", "0"),
    ("dtype", "int4"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_values_are_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name}: "):
        load_settings({name: value})


def test_unknown_names_in_a_file_are_refused() -> None:
    Path("isogloss.toml").write_text("prot = 1\n")
    with pytest.raises(SettingsError, match=r"^prot: "):
        load_settings({})


def test_a_file_that_is_no_toml() -> None:
    Path("isogloss.toml").write_text("port 1\n")
    with pytest.raises(SettingsError, match=r"isogloss\.toml is not TOML"):
        load_settings({})


def test_a_named_file_must_be_there() -> None:
    with pytest.raises(SettingsError, match="is no file"):
        load_settings({}, Path("nope.toml"))


def test_every_setting_is_described_and_grouped() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.json_schema_extra["group"] in ("server", "engine", "limits"), name  # type: ignore[index, call-overload]


def test_the_variable_that_kubernetes_sets_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOGLOSS_PORT", "tcp://10.0.0.1:80")
    with pytest.raises(SettingsError, match="enableServiceLinks"):
        load_settings({})


def test_adapters_are_names_and_folders() -> None:
    assert load_settings({}).adapters() == {}
    for given in ("a=/x, b=/y=z", ["a=/x", "b=/y=z"]):
        assert load_settings({"adapter": given}).adapters() == {"a": Path("/x"), "b": Path("/y=z")}


@pytest.mark.parametrize("given", ["a", "=x", "a=", "a=x,a=y"])
def test_adapters_need_a_name_and_a_folder(given: str) -> None:
    with pytest.raises(SettingsError, match=r"^adapter: must"):
        load_settings({"adapter": given})


def test_variables_that_are_no_settings_are_found() -> None:
    names = ["ISOGLOSS_PROT", "isogloss_port", "ISOGLOSS_PORT", "isogloss_hots", "PATH", "ISOGLOSS_CONFORMANCE_KEY"]
    assert unknown_variables(names) == ["ISOGLOSS_PROT", "isogloss_hots"]
