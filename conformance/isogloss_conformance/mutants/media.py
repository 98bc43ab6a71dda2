"""Mutants that are wrong about pictures, films and sounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from isogloss_conformance.mutants.wire import Got, Mutant, Sent, refusal
from isogloss_conformance.pictures import picture

Json = Any
Part = dict[str, Json]
EFFECT = "mindie/effects"
REFUSED = "mindie/chat.completions/fault/mindie.media_refused"
ANY = picture()


def _parts(body: Json) -> Iterator[Part]:
    for message in body.get("messages") or ():
        content = message.get("content") if isinstance(message, dict) else None
        yield from (part for part in content if isinstance(part, dict)) if isinstance(content, list) else ()


def _reads(name: str, killer: str, change: Callable[[list[Json]], list[Json]]) -> Mutant:
    """Changes the parts of each message."""

    def request(sent: Sent) -> Sent:
        body = sent.json
        if not any(_parts(body)):
            return sent
        messages = [{**message, "content": change(message["content"])} for message in body["messages"]]
        return replace(sent, body=json.dumps({**body, "messages": messages}).encode())

    return Mutant(name, killer, request)


def _drops(member: str, killer: str) -> Mutant:
    return _reads(f"drops {member}", killer, lambda parts: [part for part in parts if member not in part])


def _first_alone(parts: list[Json]) -> list[Json]:
    first = next((part for part in parts if "image_url" in part), None)
    return [part for part in parts if "image_url" not in part or part is first]


def _one_picture(parts: list[Json]) -> list[Json]:
    return [{**part, "image_url": ANY} if "image_url" in part else part for part in parts]


def _no_objects(sent: Sent) -> Sent | Got:
    spelt = any(isinstance(part.get("image_url"), dict) for part in _parts(sent.json))
    return refusal(422, {"error": "No.", "error_type": "Input Validation Error"}) if spelt else sent


def _curious(sent: Sent) -> Sent:
    """Fetches first and judges later."""
    for part in _parts(sent.json):
        parts = urlsplit(str(part.get("image_url")))
        if parts.hostname == "127.0.0.1" and parts.port:
            with suppress(OSError):
                connection = HTTPConnection(parts.hostname, parts.port, timeout=2)
                connection.request("GET", parts.path)
                connection.getresponse().read()
                connection.close()
    return sent


def _trusting(parts: list[Json]) -> list[Json]:
    """Takes a file wherever it lies."""
    return [{**part, "image_url": ANY} if part.get("image_url") == "/etc/passwd" else part for part in parts]


def _talkative(sent: Sent, got: Got) -> Got:
    """Says which address it could not use."""
    if got.status != 422:
        return got
    said = "".join(str(part.get("image_url", "")) for part in _parts(sent.json))
    return got.holding({**got.json, "error": f"{got.json.get('error')} {said}"})


MEDIA = (
    _drops("image_url", f"{EFFECT}/images"),
    _drops("video_url", f"{EFFECT}/films"),
    _drops("audio_url", f"{EFFECT}/sounds"),
    _drops("input_audio", f"{EFFECT}/inline_sounds"),
    _drops("input_audio", f"{EFFECT}/audio_same"),
    _reads("looks at the first picture alone", f"{EFFECT}/images", _first_alone),
    _reads("sees the same in every picture", f"{EFFECT}/image_seen", _one_picture),
    Mutant("takes no picture in an object", f"{EFFECT}/image_url_spellings", _no_objects),
    Mutant("fetches from a private address", REFUSED, _curious),
    _reads("reads files outside of its folder", REFUSED, _trusting),
    Mutant("repeats an address in an error", REFUSED, answer=_talkative),
)
