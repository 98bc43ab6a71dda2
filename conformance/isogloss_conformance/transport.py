"""The transport step: odd but valid ways to send a request work, and broken ones hurt nobody else.

Everything goes to the server under test and to nobody else; each check is bounded in calls, bytes and seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from isogloss_spec.document import Operation
from isogloss_spec.faults import Fault

from isogloss_conformance.checks import Check
from isogloss_conformance.client import NOT_ASKED, Answer, Request, post
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.patience import head, head_of, open_socket, read_answer
from isogloss_conformance.results import Outcome, Status, heaviest
from isogloss_conformance.session import Session
from isogloss_conformance.spellings import spellings

Json = Any
PATIENCE_S = 20.0
PIECES = 8
PAUSE_S = 0.05
CALLS = 8
LARGE_HEADER = 256 * 1024
ODD_TEXTS = ("a\\u0000b", "a\\ud800b", "\\udc00\\ud800", "\\ufeffa", "a\\uffffb", "a\\u001b[0mb", "\\u202ea")
"""Escapes, as JSON writes them: NUL, halves of surrogate pairs, a byte order mark, no character, controls."""
JSON_TYPE = {"Content-Type": "application/json"}


class TransportStep:
    """One check for each way to send a request."""

    name = "transport"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._client = session.client
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)
        self._body: dict[str, Json] = {**session.minimal, "max_tokens": 4, "temperature": 0}
        self._raw = json.dumps(self._body).encode()
        self._patience = min(PATIENCE_S, self._client.timeout)

    def checks(self) -> list[Check]:
        """All ways."""
        return [self._check(name, sentence, look) for name, sentence, look in self._ways()]

    def _check(self, name: str, sentence: str, look: Callable[[], Outcome]) -> Check:
        return Check(f"{self._session.dialect}/transport/{name}", self.name, sentence, look, "extended", "inferred")

    def _ways(self) -> Iterator[tuple[str, str, Callable[[], Outcome]]]:
        yield "chunked", "A body may come in chunks, without a length.", self._chunked
        yield "slow_writer", "A body may come in pieces, with pauses.", self._slow_writer
        yield "content_type", "The case of the content type does not matter, and UTF-8 may be named.", self._odd_types
        yield "charset", "Another charset is refused as a media type.", self._charset
        yield "escapes", "Escaped and plain characters mean the same.", self._escapes
        yield "odd_texts", "Odd characters are taken or refused, and break nothing.", self._odd_texts
        yield "keep_alive", "One connection carries several requests.", self._keep_alive
        yield "trailing_slash", "A path with a slash at its end leads nowhere.", self._slash
        yield "parallel", "Calls at once get what they get alone, each with its own id.", self._parallel
        yield "half_body", "A caller that leaves in the middle of a body hurts nobody.", self._half_body
        yield "half_header", "A caller that leaves in the middle of a header hurts nobody.", self._half_header
        yield "garbage", "What is not HTTP is refused or cut off, and hurts nobody.", self._garbage
        yield "large_header", "A header beyond all measure is refused or cut off, and hurts nobody.", self._large_header
        yield "two_lengths", "Two lengths that differ are refused.", self._two_lengths
        yield "hang_up", "Callers that leave before the answer hurt nobody.", self._hang_up
        yield "keyless", "No other spelling of a path leads past the key.", self._keyless

    def _sent(self, *pieces: bytes, pause: float = 0.0) -> Answer:
        """What comes back for raw bytes on a connection of their own."""
        started = time.perf_counter()
        if self._client.gave_up:
            return Answer(0, {}, b"", 0.0, NOT_ASKED)
        try:
            with open_socket(self._client, self._patience) as connection:
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(pause)
                return read_answer(connection, started)
        except OSError as error:  # cut off while we were sending
            return Answer(0, {}, b"", time.perf_counter() - started, f"no answer: {type(error).__name__}: {error}")

    def _accepted(self, answer: Answer, request: Request | None = None) -> Outcome:
        main = self._session.main
        asked = request or self._request()
        return self._exchange.judged(asked, answer, main, self._forecaster.of(self._body))

    def _request(self, headers: Mapping[str, str] = JSON_TYPE) -> Request:
        return Request("POST", self._session.main.path, self._raw, headers)

    def _chunked(self) -> Outcome:
        request = self._request()
        half = len(self._raw) // 2
        chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (self._raw[:half], self._raw[half:])]
        return self._accepted(self._sent(head(self._client, request, None), *chunks, b"0\r\n\r\n"))

    def _slow_writer(self) -> Outcome:
        size = len(self._raw) // PIECES + 1
        pieces = [self._raw[start : start + size] for start in range(0, len(self._raw), size)]
        return self._accepted(self._sent(head(self._client, self._request(), len(self._raw)), *pieces, pause=PAUSE_S))

    def _odd_types(self) -> Outcome:
        types = ("Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8")
        return heaviest(self._typed(name) for name in types)

    def _typed(self, content_type: str) -> Outcome:
        request = self._request({"Content-Type": content_type})
        return self._accepted(self._client.send(request), request)

    def _charset(self) -> Outcome:
        request = self._request({"Content-Type": "application/json; charset=iso-8859-1"})
        return self._exchange.refused(request, self._session.main, Fault("unsupported_media_type"))

    def _saying(self, text: str) -> dict[str, Json]:
        """The plain call with another prompt."""
        if "prompt" in self._body:
            return {**self._body, "prompt": text}
        return {**self._body, "messages": [{"role": "user", "content": text}]}

    def _odd_texts(self) -> Outcome:
        return heaviest(self._unbroken(text) for text in ODD_TEXTS)

    def _unbroken(self, text: str) -> Outcome:
        """Whether such a prompt is a right one is not said here: 200 and 4xx are both fine."""
        raw = json.dumps(self._saying("$")).replace('"$"', f'"{text}"').encode()
        request = Request("POST", self._session.main.path, raw, JSON_TYPE)
        answer = self._client.send(request)
        curl, expected = self._client.curl(request), "200, or a status from 400 to 499"
        if answer.trouble is not None:
            return Outcome(Status.ERROR, expected, answer.trouble, curl)
        fine = answer.status == 200 or 400 <= answer.status < 500
        return Outcome(Status.PASS if fine else Status.FAIL, expected, answer.described(), curl)

    def _escapes(self) -> Outcome:
        body = self._saying("é€😀")
        plain, escaped = (json.dumps(body, ensure_ascii=ascii_only).encode() for ascii_only in (False, True))
        requests = [Request("POST", self._session.main.path, raw, JSON_TYPE) for raw in (plain, escaped)]
        answers = [self._client.send(request) for request in requests]
        if lost := _lost(answers):
            return lost
        texts = [_choices(answer) for answer in answers]
        same = texts[0] is not None and texts[0] == texts[1]
        curl = self._client.curl(requests[1])
        return Outcome(Status.PASS if same else Status.FAIL, "two equal completions", f"{texts}"[:300], curl)

    def _keep_alive(self) -> Outcome:
        request = self._request()
        raw = head(self._client, request, len(self._raw)) + self._raw
        started = time.perf_counter()
        with open_socket(self._client, self._patience) as connection:
            connection.sendall(raw)
            first = self._accepted(read_answer(connection, started))
            if first.status is not Status.PASS:
                return first
            with suppress(OSError):  # it is closed: the answer, which does not come, says so
                connection.sendall(raw)
            second = read_answer(connection, started)
        if second.trouble is not None:
            return Outcome(Status.FAIL, "a second answer", second.trouble, self._client.curl(request))
        return self._accepted(second)

    def _slash(self) -> Outcome:
        request = post(self._session.main.path + "/", self._body)
        return self._exchange.refused(request, Operation("nowhere", "post", request.path, {}), Fault("not_found"))

    def _parallel(self) -> Outcome:
        """Different calls, so that answers which change hands are noticed."""
        requests = [
            post(self._session.main.path, {**self._body, "max_tokens": 1 + number % 4}) for number in range(CALLS)
        ]
        alone = [self._client.send(request) for request in requests]
        with ThreadPoolExecutor(CALLS) as pool:
            together = list(pool.map(self._client.send, requests))
        if lost := _lost([*alone, *together]):
            return lost
        for request, before, answer in zip(requests, alone, together, strict=True):
            if _choices(before) is None or _choices(answer) != _choices(before):
                curl = self._client.curl(request)
                return Outcome(Status.FAIL, f"as alone, {before.described()}", answer.described(), curl)
        ids = {answer.json.get("id") for answer in together}
        wrong = None if len(ids) == CALLS else f"{len(ids)} ids for {CALLS} calls"
        curl = self._client.curl(requests[-1])
        return Outcome(Status.FAIL if wrong else Status.PASS, "an id for each call", wrong or "so it is", curl)

    def _half_body(self) -> Outcome:
        raw = head(self._client, self._request(), len(self._raw)) + self._raw[: len(self._raw) // 2]
        return self._left(raw)

    def _half_header(self) -> Outcome:
        return self._left(head(self._client, self._request(), len(self._raw))[:40])

    def _hang_up(self) -> Outcome:
        return self._left(head(self._client, self._request(), len(self._raw)) + self._raw)

    def _left(self, raw: bytes) -> Outcome:
        """Send bytes and leave, a few times; then look whether the server is well."""
        for _ in range(CALLS):
            with open_socket(self._client, self._patience) as connection:
                connection.sendall(raw)
        return self._well()

    def _garbage(self) -> Outcome:
        return heaviest(self._refused(raw) for raw in (b"\x16\x03\x01\x00\xff" * 8, b"GARBAGE\r\n\r\n"))

    def _large_header(self) -> Outcome:
        request = self._request({**JSON_TYPE, "X-Large": "a" * LARGE_HEADER})
        return self._refused(head(self._client, request, len(self._raw)) + self._raw)

    def _two_lengths(self) -> Outcome:
        request = self._request({**JSON_TYPE, "content-length": str(len(self._raw) - 1)})
        return self._refused(head(self._client, request, len(self._raw)) + self._raw)

    def _refused(self, raw: bytes) -> Outcome:
        """A 4xx or a closed connection; never a 200, a 5xx or silence. And the server is well."""
        answer = self._sent(raw)
        expected = "a status from 400 to 499, or a closed connection"
        silent = answer.trouble is not None and answer.seconds >= self._patience
        if silent or (answer.trouble is None and not 400 <= answer.status < 500):
            return Outcome(Status.FAIL, expected, answer.described())
        return self._well()

    def _keyless(self) -> Outcome:
        if not self._client.keyed:
            return Outcome(Status.SKIP, got="unprovable: no key was given, so that the server may take every caller")
        prefix = urlsplit(self._client.base_url).path
        return heaviest(self._without_key(target) for target in spellings(prefix, self._session.main.path))

    def _without_key(self, target: str) -> Outcome:
        headers = {**self._client.headers(with_key=False), **JSON_TYPE, "Content-Length": str(len(self._raw))}
        answer = self._sent(head_of(self._client, "POST", target, headers) + self._raw)
        expected = f"a status from 300 to 499 for {target} without a key"
        curl = self._client.curl(Request("POST", target, self._raw, JSON_TYPE), with_key=False, at_root=True)
        if answer.trouble is not None:
            return Outcome(Status.ERROR, expected, answer.trouble, curl)
        status = Status.PASS if 300 <= answer.status < 500 else Status.FAIL
        return Outcome(status, expected, answer.described(), curl)

    def _well(self) -> Outcome:
        request = self._request()
        return self._accepted(self._client.send(request), request)


def _lost(answers: Iterable[Answer]) -> Outcome | None:
    """The first that did not come; None if all did."""
    troubles = [answer.trouble for answer in answers if answer.trouble is not None]
    return Outcome(Status.ERROR, "an answer", troubles[0]) if troubles else None


def _choices(answer: Answer) -> Json:
    """The choices of a completion; None if it is none."""
    body = answer.json
    return body.get("choices") if answer.status == 200 and isinstance(body, dict) else None
