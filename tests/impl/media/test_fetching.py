"""Media from the web, against servers on this machine that stand for the internet; 127.0.0.1 stands for itself."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isogloss.engine.media import Image
from isogloss.media.address import is_public, parse_address
from isogloss.media.api import MediaError, MediaRules, Reference
from isogloss.media.fetching import Fetcher
from isogloss.media.hosts import HostRule
from isogloss.media.loader import MediaLoader
from isogloss.media.network import PinnedBackend, resolve
from isogloss.media.policy import MediaPolicy
from isogloss.media.spool import Intake, Room, Spool
from support.media_files import PlainProcessor, picture

PUBLIC = "127.0.0.2"
"""Loopback all the same, and taken for public here."""
PICTURE = picture()

Make = Callable[..., MediaLoader]


async def names(host: str, port: int) -> Sequence[str]:
    if host[0].isdigit() or ":" in host:
        return [host]
    return {"gone.example": [], "inside.example": ["127.0.0.1"], "both.example": [PUBLIC, "127.0.0.1"]}.get(
        host, [PUBLIC]
    )


def is_outside(address: str) -> bool:
    return address == PUBLIC


@pytest.fixture
def loader(make_loader: Make) -> MediaLoader:
    hosts = "a.example,b.example,inside.example,both.example,gone.example,127.0.0.1"
    return make_loader(hosts, resolve=names, address_ok=is_outside, idle_seconds=0.3, fetch_seconds=1)


async def refusal(loader: MediaLoader, url: str, rules: MediaRules) -> str:
    with pytest.raises(MediaError) as caught:
        await loader.load(Reference(url), rules, PlainProcessor())
    assert str(caught.value) == caught.value.reason
    return caught.value.reason


async def test_a_picture_comes_and_the_request_tells_nothing(
    loader: MediaLoader, serve: Any, image: MediaRules
) -> None:
    async with serve(PUBLIC) as site:
        # What the answer says of itself does not count.
        site.page("/x?y", PICTURE, Content_Type="text/html", Set_Cookie="a=b")
        for _ in range(2):
            media = await loader.load(Reference(f"http://A.example:{site.port}/x?y#z"), image, PlainProcessor())
            assert isinstance(media, Image)
            assert media.pixels.shape == (40, 60, 3)
    lines = site.heads[1].split("\r\n")
    assert lines[:2] == ["GET /x?y HTTP/1.1", f"Host: a.example:{site.port}"]
    assert sorted(line.split(":")[0] for line in lines[2:-2]) == [
        "Accept",
        "Accept-Encoding",
        "Connection",
        "User-Agent",
    ]


async def test_no_address_gets_into_a_log(
    loader: MediaLoader, serve: Any, image: MediaRules, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with serve(PUBLIC) as site:
        site.page("/", b"")
        await refusal(loader, f"http://a.example:{site.port}/", image)
    assert "example" not in caplog.text


async def test_the_environment_names_no_proxy(
    loader: MediaLoader, serve: Any, image: MediaRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve() as proxy, serve(PUBLIC) as site:
        site.page("/", PICTURE)
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await loader.load(Reference(f"http://a.example:{site.port}/"), image, PlainProcessor())
        assert not proxy.heads


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("c.example", "not_allowed"),
        ("x.a.example", "not_allowed"),
        ("a.example.c.example", "not_allowed"),
        ("a.example@127.0.0.1", "not_allowed"),
        ("inside.example", "not_allowed"),
        ("both.example", "not_allowed"),
        ("127.0.0.1", "not_allowed"),
        ("[::ffff:127.0.0.1]", "not_allowed"),
        ("gone.example", "unreachable"),
    ],
)
async def test_hosts_that_are_not_read(
    make_loader: Make, serve: Any, image: MediaRules, host: str, reason: str
) -> None:
    hosts = "a.example,inside.example,both.example,gone.example,127.0.0.1,::ffff:127.0.0.1"
    loader = make_loader(hosts, resolve=names, address_ok=is_outside)
    async with serve() as canary, serve(PUBLIC, canary.port) as site:
        assert await refusal(loader, f"http://{host}:{canary.port}/", image) == reason
        assert canary.heads == site.heads == []


async def test_an_address_is_resolved_once_a_connection(make_loader: Make, serve: Any, image: MediaRules) -> None:
    answers = [PUBLIC, "127.0.0.1"]

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return [answers.pop(0)]

    loader = make_loader("a.example", resolve=rebinding, address_ok=is_outside)
    async with serve() as canary, serve(PUBLIC, canary.port) as site:
        site.page("/", PICTURE)
        await loader.load(Reference(f"http://a.example:{site.port}/"), image, PlainProcessor())
        assert answers == ["127.0.0.1"]
        assert await refusal(loader, f"http://a.example:{site.port}/", image) == "not_allowed"
        assert len(site.heads) == 1
        assert not canary.heads


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://b.example:{port}/picture", None),
        ("/picture", None),
        ("//b.example:{port}/picture", None),
        ("http://c.example:{port}/picture", "not_allowed"),
        ("http://127.0.0.1:{canary}/picture", "not_allowed"),
        ("http://inside.example:{canary}/picture", "not_allowed"),
        ("http://a.example@127.0.0.1:{canary}/", "not_allowed"),
        ("file:///etc/passwd", "not_allowed"),
        ("/loop", "unreachable"),
        ("\xff", "unreachable"),
    ],
)
async def test_each_hop_is_checked(
    loader: MediaLoader, serve: Any, image: MediaRules, location: str, reason: str | None
) -> None:
    async with serve() as canary, serve(PUBLIC) as site:
        place = location.format(port=site.port, canary=canary.port)
        site.pages["/"] = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")
        site.page("/loop", b"", "307 Temporary Redirect", Location="/loop", Content_Length=0)
        site.page("/picture", PICTURE)
        url = f"http://a.example:{site.port}/"
        if reason is None:
            await loader.load(Reference(url), image, PlainProcessor())
        else:
            assert await refusal(loader, url, image) == reason
        assert not canary.heads


async def test_three_redirects_are_followed_and_no_fourth(loader: MediaLoader, serve: Any, image: MediaRules) -> None:
    async with serve(PUBLIC) as site:
        for i in range(4):
            site.page(f"/{i}", b"", "301 Moved", Location=f"/{i + 1}")
        site.page("/4", PICTURE)
        await loader.load(Reference(f"http://a.example:{site.port}/1"), image, PlainProcessor())
        assert await refusal(loader, f"http://a.example:{site.port}/0", image) == "unreachable"


async def test_answers_that_are_no_medium(loader: MediaLoader, serve: Any, image: MediaRules) -> None:
    async with serve(PUBLIC) as site:
        site.page("/404", PICTURE, "404 Not Found")
        site.page("/206", PICTURE, "206 Partial Content")
        site.page("/short", PICTURE, Content_Length=len(PICTURE) + 1)
        site.page("/declared", b"", Content_Length=2**40)
        site.page("/large", bytes(image.max_bytes + 1))
        site.page("/text", b"<html>")
        site.page("/empty", b"")
        site.page("/gzip", b"\x1f\x8b" + bytes(20), Content_Encoding="gzip")
        site.pages["/nonsense"] = b"SSH-2.0-x\r\n"
        for path, reason in {
            "/404": "unreachable",
            "/206": "unreachable",
            "/short": "unreachable",
            "/nonsense": "unreachable",
            "/declared": "too_large",
            "/large": "too_large",
            "/text": "wrong_format",
            "/empty": "wrong_format",
            "/gzip": "wrong_format",
        }.items():
            assert await refusal(loader, f"http://a.example:{site.port}{path}", image) == reason, path
        closed = site.port
    assert await refusal(loader, f"http://a.example:{closed}/", image) == "unreachable"


async def test_slow_servers(loader: MediaLoader, serve: Any, image: MediaRules) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with serve(PUBLIC) as site:
        site.page("/", b"")
        site.then = drip
        assert await refusal(loader, f"http://a.example:{site.port}/", image) == "timeout"  # in all
        site.then = lambda writer: asyncio.sleep(5)
        assert await refusal(loader, f"http://a.example:{site.port}/", image) == "timeout"  # idle


async def test_who_goes_away_ends_the_download(make_loader: Make, serve: Any, image: MediaRules) -> None:
    loader = make_loader("a.example", resolve=names, address_ok=is_outside, bytes_in_flight=2**20)
    begun = asyncio.Event()

    async def flood(writer: asyncio.StreamWriter) -> None:
        begun.set()
        while True:
            writer.write(bytes(1000))
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serve(PUBLIC) as site:
        site.page("/", b"")
        site.then = flood
        task = asyncio.create_task(loader.load(Reference(f"http://a.example:{site.port}/"), image, PlainProcessor()))
        await begun.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(site.gone.wait(), 2)
    assert loader._room.free == 2**20


async def test_names_that_take_long_keep_nothing_else_waiting(
    make_loader: Make, image: MediaRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found.wait(10) and [])
    loader = make_loader("slow.example", downloads=64, connect_seconds=0.2)
    try:
        waiting = [asyncio.create_task(refusal(loader, f"http://slow.example/{i}", image)) for i in range(64)]
        await asyncio.sleep(0.05)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 5) == "done"
        assert set(await asyncio.gather(*waiting)) == {"timeout"}
    finally:
        found.set()


def make_certificate(folder: Path) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=x"
    command += " -addext subjectAltName=DNS:a.example -keyout key.pem -out cert.pem"
    try:
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl here that can make certificates")


async def test_certificates_are_held_against_the_name(
    loader: MediaLoader, serve: Any, image: MediaRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificate(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    async with serve(PUBLIC, ssl=server) as site:
        site.page("/", PICTURE)
        site.page("/down", b"", "302 Found", Location=f"http://a.example:{site.port}/")
        url = f"https://a.example:{site.port}/"
        assert await refusal(loader, url, image) == "unreachable"  # nobody vouches for it
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        del loader._fetcher._tls
        await loader.load(Reference(url), image, PlainProcessor())
        assert await refusal(loader, f"https://b.example:{site.port}/", image) == "unreachable"
        assert await refusal(loader, f"{url}down", image) == "not_allowed"


# -- the many ways to write 127.0.0.1 --

NUMBERS = [str, hex, lambda n: f"0{n:o}", lambda n: f"0x{n:08X}", lambda n: f"{n:04d}"]
WIDE = {ord("."): "\u3002"} | {ord("0") + i: chr(0xFF10 + i) for i in range(10)}


@st.composite
def loopbacks(draw: Any) -> str:
    address = 127 << 24 | draw(st.integers(0, 2**24 - 1))
    address = draw(st.sampled_from([address, 127 << 24 | 1]))
    parts = [address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255]
    cut = draw(st.integers(0, 3))
    last = address & (1 << 8 * (4 - cut)) - 1
    texts = [draw(st.sampled_from(NUMBERS))(part) for part in [*parts[:cut], last]]
    text = ".".join(texts) + draw(st.sampled_from(["", "."]))
    dotted = ".".join(map(str, parts))
    six = [f"[::ffff:{dotted}]", f"[::{dotted}]", "[::1]", "[0:0::1]", "[::1%lo]", "[::1%25lo]", f"[64:ff9b::{dotted}]"]
    names = [
        "localhost",
        "LOCALHOST.",
        "ip6-localhost",
        f"a.example@{text}",
        f"{text}#@a.example",
        f"{text}\\@a.example",
    ]
    return draw(st.sampled_from([text, dotted, text.translate(WIDE), *six, *names]))


@given(loopbacks())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_spelling_of_this_machine_is_connected_to(serve: Any, host: str) -> None:
    """By the system's own look-up, and with every host on the list: what is left is the check of addresses."""

    class Anything(HostRule):
        def allows(self, host: str, port: int) -> bool:
            return True

    policy = MediaPolicy(allowed_hosts=(Anything("any"),), fetch_seconds=5)
    room = Room(1000)
    async with serve() as canary:
        fetcher = Fetcher(policy, PinnedBackend(resolve, is_public))
        with pytest.raises(MediaError) as caught:
            await fetcher.fetch(parse_address(f"http://{host}:{canary.port}/"), Spool(policy, Intake(1000), room))
        assert caught.value.reason == "not_allowed" or host.startswith("ip6")
        assert not canary.heads
