"""Media over HTTP: real files, got and decoded by the server's own loader, for the scripted engine."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import av
import httpx
import numpy as np
import pytest
import soundfile
from isogloss.media.loader import MediaLoader
from isogloss.media.policy import MediaPolicy, parse_hosts
from isogloss.server import StartError, make_app, make_engine, make_media, serve
from isogloss.settings import MEDIA_HOSTS, Settings
from PIL import Image

PATH = "/mindie/v1/chat/completions"
RATE = 16_000
TYPES = {
    "a.jpg": "image/jpeg",
    "a.png": "image/png",
    "a.mp4": "video/mp4",
    "a.avi": "video/x-msvideo",
    "a.wmv": "video/x-ms-wmv",
    "a.mp3": "audio/mpeg",
    "a.wav": "audio/x-wav",
    "a.flac": "audio/flac",
}
TOKENS = {"image": 8, "video": 32, "audio": 4}
"""Pictures of 128 by 64 pixels become 64 by 32; a film has four such frames; the sound takes a second."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The media folder, with a file of each format."""
    folder = tmp_path_factory.mktemp("media")
    for name in ("a.jpg", "a.png"):
        Image.new("RGB", (128, 64), (200, 30, 90)).save(folder / name)
    for name, codec in (("a.mp4", "mpeg4"), ("a.avi", "mpeg4"), ("a.wmv", "wmv2")):
        film(folder / name, codec)
    for name in ("a.mp3", "a.wav", "a.flac"):
        soundfile.write(folder / name, np.sin(np.arange(RATE) / 9) / 2, RATE)
    (folder / "text.png").write_text("no picture at all")
    return folder


def film(path: Path, codec: str) -> None:
    form = {"wmv": "asf"}.get(path.suffix[1:], path.suffix[1:])
    with av.open(path, "w", format=form) as container:
        stream = container.add_stream(codec, rate=4, width=128, height=64, pix_fmt="yuv420p")
        for number in range(8):
            pixels = np.full((64, 128, 3), 20 * number, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels)))
        container.mux(stream.encode())


def kind_of(name: str) -> str:
    return TYPES[name].partition("/")[0]


def data(folder: Path, name: str) -> str:
    return base64.b64encode((folder / name).read_bytes()).decode()


Ask = Callable[..., Any]


@pytest.fixture
async def ask(folder: Path, tmp_path: Path) -> AsyncIterator[Ask]:
    """Posts content parts; the answer. The one machine that there is counts as public."""
    settings = Settings(engine="scripted", media_folder=folder)
    engine = make_engine(settings)
    await engine.start()
    policy = MediaPolicy(allowed_hosts=parse_hosts("127.0.0.1"), folder=folder)
    loader = MediaLoader(policy, address_ok=lambda _: True)
    transport = httpx.ASGITransport(make_app(settings, engine, media=loader))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

        async def post(*parts: Any) -> httpx.Response:
            messages = [{"role": "user", "content": [{"type": "text", "text": "x"}, *parts]}]
            body = {"model": "scripted", "messages": messages, "max_tokens": 8, "temperature": 0}
            return await client.post(PATH, json=body)

        yield post
    loader.close()
    await engine.stop()


@pytest.mark.parametrize("name", TYPES)
async def test_every_spelling_of_every_format(ask: Ask, folder: Path, name: str) -> None:
    kind, encoded = kind_of(name), data(folder, name)
    values = [name, str(folder / name), f"file://{name}", f"file://{folder / name}"]
    values += [f"data:{TYPES[name]};base64,{encoded}"]
    values += [encoded] if name == "a.jpg" else []
    member = f"{kind}_url"
    parts = [{"type": member, member: value} for value in values] + [{member: {"url": value}} for value in values]
    if kind == "audio":
        parts.append({"type": "input_audio", "input_audio": {"data": encoded, "format": name[2:]}})
    without = (await ask()).json()["usage"]["prompt_tokens"]
    counted, texts = set(), set()
    for part in parts:
        answer = await ask(part)
        assert answer.status_code == 200, (list(part), answer.text)
        counted.add(answer.json()["usage"]["prompt_tokens"] - without)
        texts.add(answer.json()["choices"][0]["message"]["content"])
    assert len(texts) == 1
    (tokens,) = counted
    assert tokens == pytest.approx(TOKENS[kind], abs=1 if name == "a.mp3" else 0)  # an encoder adds some silence


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"image_url": "missing.png"}, "there is no such file"),
        ({"image_url": "text.png"}, "formats"),
        ({"image_url": "a.wav"}, "formats"),
        ({"image_url": {"url": "file:///etc/passwd"}}, "reads nothing"),
        ({"image_url": "../secret.png"}, "reads nothing"),
        ({"audio_url": "ftp://127.0.0.1/secret.wav"}, "reads nothing"),
        ({"video_url": "http://secret.example/a.mp4"}, "reads nothing"),
        ({"image_url": "data:image/png;base64,c2VjcmV0"}, "formats"),
        ({"image_url": "data:image/gif;base64,c2VjcmV0"}, "formats"),
        ({"input_audio": {"data": "secret!", "format": "wav"}}, "damaged"),
    ],
)
async def test_a_refusal_names_the_part_alone(ask: Ask, part: dict[str, Any], reason: str) -> None:
    answer = await ask(part)
    (member,) = part
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"'messages[0].content[1].{member}' cannot be used: ")
    assert reason in answer.json()["error"]
    assert "secret" not in answer.text


class Host:
    """A host of pictures; counts who came, and holds back its answer if the test says so."""

    def __init__(self, picture: bytes) -> None:
        self.picture = picture
        self.met = 0
        self.came = asyncio.Event()
        self.left = asyncio.Event()
        self.silent = False

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        await reader.readuntil(b"\r\n\r\n")
        self.came.set()
        if not self.silent:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.picture) + self.picture)
        await reader.read()
        self.left.set()
        writer.close()


@pytest.fixture
async def host(folder: Path) -> AsyncIterator[tuple[Host, str]]:
    found = Host((folder / "a.png").read_bytes())
    async with await asyncio.start_server(found, "127.0.0.1", 0) as server:
        yield found, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a.png"


async def test_from_a_host(ask: Ask, host: tuple[Host, str]) -> None:
    found, address = host
    assert (await ask({"image_url": address})).status_code == 200
    assert found.met == 1


async def test_nothing_is_fetched_for_a_request_that_is_refused_anyway(ask: Ask, host: tuple[Host, str]) -> None:
    found, address = host
    for parts in ([{"image_url": address}] * 21, [{"image_url": address}, {"text": "x y " * 4000}]):
        assert (await ask(*parts)).status_code == 422
    assert found.met == 0


async def test_whoever_leaves_ends_the_download(ask: Ask, host: tuple[Host, str]) -> None:
    found, address = host
    found.silent = True
    task = asyncio.create_task(ask({"image_url": address}))
    await asyncio.wait_for(found.came.wait(), 5)
    task.cancel()
    await asyncio.wait_for(found.left.wait(), 5)


@pytest.mark.parametrize(
    "wrong",
    [{"media_hosts": ("a b",)}, {"media_hosts": ("ok.example", "http://x.example")}, {"media_folder": Path("media")}],
)
def test_wrong_settings_end_the_start(wrong: dict[str, Any]) -> None:
    with pytest.raises(StartError, match="media"):
        serve(Settings(engine="scripted", port=0, **wrong), lambda _: None)


def test_hosts_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEDIA_HOSTS, "upload.example.org, 203.0.113.7,")
    engine = make_engine(Settings(engine="scripted"))
    for settings, hosts in (
        (Settings(), ["upload.example.org", "203.0.113.7"]),
        (Settings(media_hosts=("b.example",)), ["b.example"]),
        (Settings(media_hosts=()), []),
    ):
        loader = make_media(settings, engine)
        assert loader is not None
        assert [rule.host for rule in loader._policy.allowed_hosts] == hosts


def test_without_decoders_only_texts_are_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("isogloss.server.find_spec", lambda name: None if name == "av" else object())
    assert make_media(Settings(), make_engine(Settings(engine="scripted"))) is None
    assert "isogloss[media]" in caplog.text
