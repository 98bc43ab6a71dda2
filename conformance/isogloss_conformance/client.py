"""Sends requests as they are, and says what came back. No retries, no redirects, no validation."""

from __future__ import annotations

import base64
import json
import re
import shlex
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from isogloss_conformance.curl import command
from isogloss_conformance.deadline import Deadline, limited
from isogloss_conformance.events import Recording

Json = Any
LARGEST_ANSWER = 16 * 2**20
"""Bytes of an answer that are read."""
GIVEN_UP_AFTER = 8
"""Requests in a row without an answer in time, after which a server is not asked any more."""
NOT_ASKED = f"no answer: not asked any more, as none of the last {GIVEN_UP_AFTER} requests was answered in time"
SECRET_CHARS = 8
"""Shorter values that go with every request are no secrets; to black them out would leave gaps everywhere."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")


class AddressError(ValueError):
    """What a client was told cannot go over the wire. The text says why."""


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
        except (ValueError, RecursionError):
            return None

    @property
    def packing(self) -> str | None:
        """The content encoding; None if the body came as it is, as it was asked for."""
        found = self.headers.get("content-encoding", "identity").strip().lower()
        return None if found in ("", "identity") else found

    def described(self) -> str:
        """Status and beginning of the body, in one line."""
        if self.trouble is not None:
            return self.trouble
        if self.packing is not None:
            return f"{self.status} packed with {self.packing}, though nobody asked for that"
        text = self.content[:300].decode("utf-8", "replace").replace("\n", " ")
        return f"{self.status} {text}"


def post(path: str, body: Json, headers: Mapping[str, str] | None = None) -> Request:
    """A JSON body, as compact UTF-8, with headers beside those that every JSON body has."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Request("POST", path, text.encode(), {"Content-Type": "application/json", **(headers or {})})


class Client:
    """A server under test. `base_url` may end with a prefix; documents' paths are put behind it.

    `timeout` bounds each exchange as a whole, in seconds. Raises AddressError.
    """

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
        self.base_url, user = _address(base_url)
        # Answers are compared as they come; nobody wants them packed.
        plain = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "isogloss-conformance"}
        self.own_headers: Mapping[str, str] = {**plain, **(headers or {})}
        """Sent with every request."""
        self._key = f"Bearer {key}" if key else user
        self.keyed = self._key is not None
        for name, value in self.headers().items():
            _check_header(name, value)
        self._given = tuple(headers or ())
        self._secrets = {value for value in (headers or {}).values() if len(value) >= SECRET_CHARS}
        self.timeout = timeout
        self.authorities = authorities
        self.certificate = certificate
        self.tls = ssl.create_default_context(cafile=authorities)
        """Whom to trust, and who we are."""
        if certificate is not None:
            self.tls.load_cert_chain(certificate)
        # A server may close an idle connection just when the next request goes out on it, which is nobody's fault.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._http = httpx.Client(timeout=timeout, verify=self.tls, trust_env=False, limits=limits)
        self._late = 0
        self._answered = time.monotonic()

    def headers(self, *, with_key: bool = True) -> dict[str, str]:
        """What goes with every request."""
        return {**self.own_headers, **(self.key_headers() if with_key else {})}

    def key_headers(self) -> dict[str, str]:
        """The header that carries the key; empty without one."""
        return {} if self._key is None else {"Authorization": self._key}

    def redacted(self, text: str) -> str:
        """A text for people, without the key and the values of headers that were given."""
        if self._key is not None:
            scheme, _, key = self._key.partition(" ")
            text = text.replace(self._key, f"{scheme} $KEY")
            text = text.replace(key, "$KEY") if len(key) >= SECRET_CHARS else text
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text

    def send(self, request: Request, *, with_key: bool = True) -> Answer:
        """Send one request. Never raises for what the server does."""
        return self._sent(self.base_url, request, {**self.headers(with_key=with_key), **request.headers})

    def ask_root(self, path: str) -> Answer:
        """GET a path of the host itself, whatever prefix `base_url` has."""
        return self._sent(self.root, Request("GET", path, headers={}), self.headers())

    @property
    def root(self) -> str:
        """The address without a path."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"

    def _sent(self, base: str, request: Request, headers: Mapping[str, str]) -> Answer:
        started = time.perf_counter()
        content = bytearray()
        try:
            with self._exchange(base, request, headers) as answer:
                for piece in answer.iter_raw():
                    content += piece
                    _check_size(len(content))
        except _Lost as reason:
            return Answer(0, {}, b"", time.perf_counter() - started, str(reason))
        return Answer(answer.status_code, dict(answer.headers), bytes(content), time.perf_counter() - started)

    def record(self, request: Request, *, events: int | None = None) -> Recording:
        """Send one request and record what comes, piece by piece; hang up after so many events, if given."""
        started = time.perf_counter()
        pieces: list[tuple[float, bytes]] = []
        size = 0
        try:
            with self._exchange(self.base_url, request, {**self.headers(), **request.headers}) as answer:
                for piece in answer.iter_raw():
                    pieces.append((time.perf_counter() - started, piece))
                    _check_size(size := size + len(piece))
                    if events is not None and len(pieces) >= events:
                        break
        except _Lost as reason:
            return Recording(0, {}, tuple(pieces), str(reason))
        return Recording(answer.status_code, dict(answer.headers), tuple(pieces))

    @contextmanager
    def _exchange(self, base: str, request: Request, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """An answer whose body is still to be read, in bounded time. Raises _Lost, also from inside of the block."""
        if self.gave_up:
            raise _Lost(NOT_ASKED)
        deadline = Deadline()
        asked = self._http.build_request(
            request.method,
            base + request.path,
            content=request.body,
            headers=dict(headers),
            extensions={"trace": deadline.trace},
        )
        try:
            with limited(deadline, self.timeout):
                answer = self._http.send(asked, stream=True)
                try:
                    yield answer
                finally:
                    answer.close()
        except httpx.HTTPError as error:
            late = deadline.passed or isinstance(error, httpx.TimeoutException)
            self._late += late
            reason = f"it took longer than {self.timeout:g} s" if late else f"{type(error).__name__}: {error}"
            raise _Lost(f"no answer: {reason}") from None
        if deadline.passed:  # a body without a length ends where its connection does
            self._late += 1
            raise _Lost(f"no answer: it took longer than {self.timeout:g} s")
        self._late, self._answered = 0, time.monotonic()

    @property
    def gave_up(self) -> bool:
        """Whether many requests were sent one after the other, not at once, and none was answered in time."""
        silent = time.monotonic() - self._answered
        return self._late >= GIVEN_UP_AFTER and silent >= GIVEN_UP_AFTER * self.timeout

    def curl(self, request: Request, *, with_key: bool = True, at_root: bool = False) -> str:
        """A command line that repeats the request, with variables of the shell for the key and for given headers.

        `at_root` is for a path that stands for itself, whatever prefix `base_url` has.
        """
        hidden = {name: f"${re.sub('[^A-Z0-9]', '_', name.upper())}" for name in self._given}
        if with_key and self._key is not None:
            hidden["Authorization"] = f"{self._key.partition(' ')[0]} $KEY"
        tls = [("--cacert", self.authorities), ("--cert", self.certificate)]
        options = [text for name, path in tls if path is not None for text in (name, shlex.quote(path))]
        headers = {**hidden, **request.headers}
        base = self.root if at_root else self.base_url
        return command(request.method, base + request.path, headers, request.body, options)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


class _Lost(Exception):
    """An exchange brought no answer. The text says why."""


def _check_size(size: int) -> None:
    if size > LARGEST_ANSWER:
        raise _Lost(f"no answer: it is longer than {LARGEST_ANSWER} bytes")


def _address(base_url: str) -> tuple[str, str | None]:
    """A base URL without user, and the user as a key. Raises AddressError."""
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.query or parts.fragment or not _VALUE.fullmatch(base_url):
        raise AddressError("a base URL must be of the form http://HOST:PORT/PREFIX or https://HOST:PORT/PREFIX")
    user, found, host = parts.netloc.rpartition("@")
    key = f"Basic {base64.b64encode(unquote(user).encode()).decode()}" if found else None
    return parts._replace(netloc=host).geturl().rstrip("/"), key


def _check_header(name: str, value: str) -> None:
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise AddressError(f"the header {name!r} cannot be sent: its name or its value has characters that none has")
