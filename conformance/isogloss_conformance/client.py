"""Sends requests as they are, and says what came back. No retries, no redirects, no validation."""

from __future__ import annotations

import json
import shlex
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import httpx

from isogloss_conformance.events import Recording

Json = Any
_LONGEST_SHOWN_BODY = 2000


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, body as bytes."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


@dataclass(frozen=True)
class Answer:
    """What came back; `trouble` says why nothing did."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    seconds: float
    trouble: str | None = None

    @cached_property
    def json(self) -> Json:
        """The body as JSON; None if it is none."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None

    def described(self) -> str:
        """Status and beginning of the body, in one line."""
        if self.trouble is not None:
            return self.trouble
        text = self.content[:300].decode("utf-8", "replace").replace("\n", " ")
        return f"{self.status} {text}"


def post(path: str, body: Json, headers: Mapping[str, str] | None = None) -> Request:
    """A JSON body, as compact UTF-8, with headers beside those that every JSON body has."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Request("POST", path, text.encode(), {"Content-Type": "application/json", **(headers or {})})


class Client:
    """A server under test. `base_url` may end with a prefix; documents' paths are put behind it."""

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        authorities: str | None = None,
        certificate: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._own = {"Accept": "*/*", "User-Agent": "isogloss-conformance", **(headers or {})}
        self._key = {"Authorization": f"Bearer {key}"} if key else {}
        self.keyed = key is not None
        self.tls = ssl.create_default_context(cafile=authorities)
        """Whom to trust, and who we are."""
        if certificate is not None:
            self.tls.load_cert_chain(certificate)
        # A server may close an idle connection just when the next request goes out on it, which is nobody's fault.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._http = httpx.Client(timeout=timeout, verify=self.tls, trust_env=False, limits=limits)

    def headers(self, *, with_key: bool = True) -> dict[str, str]:
        """What goes with every request."""
        return {**self._own, **(self._key if with_key else {})}

    def key_headers(self) -> dict[str, str]:
        """The header that carries the key; empty without one."""
        return dict(self._key)

    def send(self, request: Request, *, with_key: bool = True) -> Answer:
        """Send one request. Never raises for what the server does."""
        return self._sent(self.base_url, request, {**self.headers(with_key=with_key), **request.headers})

    def ask_root(self, path: str) -> Answer:
        """GET a path of the host itself, whatever prefix `base_url` has."""
        parts = urlsplit(self.base_url)
        return self._sent(f"{parts.scheme}://{parts.netloc}", Request("GET", path, headers={}), self.headers())

    def _sent(self, base: str, request: Request, headers: Mapping[str, str]) -> Answer:
        started = time.perf_counter()
        try:
            answer = self._http.request(request.method, base + request.path, content=request.body, headers=headers)
        except httpx.HTTPError as error:
            waited = time.perf_counter() - started
            return Answer(0, {}, b"", waited, f"no answer: {type(error).__name__}: {error}")
        seconds = time.perf_counter() - started
        return Answer(answer.status_code, dict(answer.headers), answer.content, seconds)

    def record(self, request: Request, *, events: int | None = None) -> Recording:
        """Send one request and record what comes, piece by piece; hang up after so many events, if given."""
        headers = {**self.headers(), **request.headers}
        started = time.perf_counter()
        pieces: list[tuple[float, bytes]] = []
        try:
            with self._http.stream(
                request.method, self.base_url + request.path, content=request.body, headers=headers
            ) as answer:
                for piece in answer.iter_raw():
                    pieces.append((time.perf_counter() - started, piece))
                    if events is not None and len(pieces) >= events:
                        break
        except httpx.HTTPError as error:
            return Recording(0, {}, tuple(pieces), f"no answer: {type(error).__name__}: {error}")
        return Recording(answer.status_code, dict(answer.headers), tuple(pieces))

    def curl(self, request: Request) -> str:
        """A command line that repeats the request, with `$KEY` for the key."""
        parts = ["curl", "-sS", "-i", "-X", request.method, shlex.quote(self.base_url + request.path)]
        if self._key:
            parts += ["-H", '"Authorization: Bearer $KEY"']
        for name, value in request.headers.items():
            parts += ["-H", shlex.quote(f"{name}: {value}")]
        if request.body:
            parts += ["--data-binary", shlex.quote(_shown(request.body))]
        return " ".join(parts)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


def _shown(body: bytes) -> str:
    text = body.decode("utf-8", "backslashreplace")
    if len(text) <= _LONGEST_SHOWN_BODY:
        return text
    return f"{text[:_LONGEST_SHOWN_BODY]}… ({len(body)} bytes)"
