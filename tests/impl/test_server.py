"""The composition root."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator

import httpx
import pytest
from isogloss.server import StartError, make_app, make_engine, serve
from isogloss.settings import Settings


def test_the_scripted_server_needs_no_torch() -> None:
    code = (
        "import sys\n"
        "from isogloss.server import make_engine\n"
        "from isogloss.settings import Settings\n"
        "make_engine(Settings(engine='scripted'))\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_settings_reach_the_engine_and_the_judge() -> None:
    engine = make_engine(Settings(engine="scripted", model_name="mine", max_model_len=8))
    await engine.start()
    assert (engine.card.name, engine.card.context_length) == ("mine", 8)
    transport = httpx.ASGITransport(make_app(Settings(engine="scripted"), engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        good = await client.post("/v1/completions", json={"model": "mine", "prompt": "hi", "max_tokens": 2})
        assert good.status_code == 200
        bad = await client.post("/v1/completions", json={"model": "smollm2", "prompt": "hi"})
        assert bad.status_code == 404
        feature = await client.post("/v1/completions", json={"model": "mine", "prompt": "hi", "suffix": "a"})
        assert feature.status_code == 400
    await engine.stop()


async def test_the_body_limit_holds_for_operations_without_a_body_too() -> None:
    engine = make_engine(Settings(engine="scripted"))
    await engine.start()

    async def chunks(size: int) -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * (size // 8)
        yield b"x" * (size % 8)

    transport = httpx.ASGITransport(make_app(Settings(engine="scripted"), engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://test/acs/v1") as client:
        for size, status in ((8 * 2**20, 400), (8 * 2**20 + 1, 413)):
            for content in (b"x" * size, chunks(size)):
                answer = await client.post("/chat/completions", content=content)
                assert answer.status_code == status, size
    await engine.stop()


async def test_what_the_engine_is_left_to_choose_is_not_passed() -> None:
    engine = make_engine(Settings(engine="scripted"))
    await engine.start()
    assert engine.card.context_length == 4096
    await engine.stop()


def test_an_engine_that_does_not_start_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        async def start(self) -> None:
            raise OSError("the disk is full")

    monkeypatch.setattr("isogloss.server.make_engine", lambda settings: Broken())
    with pytest.raises(StartError, match=r"^the engine did not start: the disk is full$"):
        serve(Settings(engine="scripted", port=0), lambda what: None)


@pytest.mark.parametrize("setting", ["tool_parser", "reasoning_parser"])
def test_formats_that_are_none_are_named_before_anything_is_loaded(setting: str) -> None:
    with pytest.raises(StartError, match=rf"^{setting}: 'qwen9' is none of auto, none, .*qwen3"):
        serve(Settings(engine="scripted", port=0, **{setting: "qwen9"}), lambda what: None)


@pytest.mark.parametrize(
    ("tools", "reasoning", "formats"),
    [
        ("auto", "auto", ("hermes", None)),
        ("none", "none", (None, None)),
        ("llama3", "deepseek_r1", ("llama3", "deepseek_r1")),
    ],
)
def test_formats_reach_the_engine(tools: str, reasoning: str, formats: tuple[str | None, str | None]) -> None:
    engine = make_engine(Settings(engine="scripted", tool_parser=tools, reasoning_parser=reasoning))
    assert (engine.card.tool_format, engine.card.reasoning_format) == formats
    assert ("tools" in engine.features) is (formats[0] is not None)


def test_a_server_open_to_all_is_warned_about(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("isogloss.server._listen", lambda settings: (_ for _ in ()).throw(StartError("no")))
    for host, warned in (("127.0.0.1", False), ("0.0.0.0", True)):
        caplog.clear()
        with pytest.raises(StartError):
            serve(Settings(engine="scripted", host=host), lambda what: None)
        assert ("no keys are set" in caplog.text) is warned


@pytest.mark.parametrize(("wanted", "warned"), [(None, False), (8, False), (9, True)])
def test_a_context_that_the_model_cannot_is_warned_about(
    wanted: int | None, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(Settings(engine="scripted", max_model_len=8))
    monkeypatch.setattr("isogloss.server.make_engine", lambda settings: engine)

    def stop(what: object) -> None:
        raise StartError("far enough")

    with pytest.raises(StartError, match="far enough"):
        serve(Settings(engine="scripted", port=0, max_model_len=wanted), stop)
    assert ("the model has 8 tokens of context, not 9" in caplog.text) is warned


def test_a_missing_extra_is_left_to_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        async def start(self) -> None:
            raise ModuleNotFoundError("No module named 'gguf'", name="gguf")

    monkeypatch.setattr("isogloss.server.make_engine", lambda settings: Missing())
    with pytest.raises(ModuleNotFoundError):
        serve(Settings(engine="scripted", port=0), lambda what: None)
