"""Mutants that change an answer which is not a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from isogloss_conformance.mutants.wire import Got, Mutant, Sent

Json = Any
N = "nim/completions"


def _error(name: str, killer: str, change: Callable[[Got], Got]) -> Mutant:
    """Changes every error."""
    return Mutant(name, killer, answer=lambda sent, got: change(got) if got.status >= 400 else got)


def _success(name: str, killer: str, change: Callable[[Got], Got]) -> Mutant:
    """Changes every completion."""

    def answer(sent: Sent, got: Got) -> Got:
        return change(got) if got.status == 200 and sent.method == "POST" else got

    return Mutant(name, killer, answer=answer)


def _member(name: str, value: Json) -> Callable[[Got], Got]:
    """Replaces one member of the body."""
    return lambda got: got.holding({**got.json, name: value})


def _without(name: str) -> Callable[[Got], Got]:
    return lambda got: got.holding({key: value for key, value in got.json.items() if key != name})


def _header_lost(name: str) -> Callable[[Got], Got]:
    return lambda got: replace(got, headers={key: value for key, value in got.headers.items() if key != name})


def _status(old: int, new: int) -> Callable[[Got], Got]:
    return lambda got: replace(got, status=new) if got.status == old else got


def _code_as_number(got: Got) -> Got:
    return got.holding({**got.json, "error": {**got.json.get("error", {}), "code": got.status}})


ANSWERS = (
    _error("errors are flat", f"{N}/n/maximum", lambda got: got.holding({"error": "Bad request."})),
    _error("errors are a bare text", f"{N}/n/maximum", lambda got: got.holding("Bad request.")),
    _error("errors are a page", "nim/fault/not_found", lambda got: replace(got, body=b"<html>", headers={})),
    _error("400 for 422", f"{N}/n/maximum", _status(422, 400)),
    _error("422 for 400", f"{N}/echo/not_streamed", _status(400, 422)),
    _error("404 for 405", f"{N}/fault/method_not_allowed", _status(405, 404)),
    _error("400 for 415", f"{N}/fault/unsupported_media_type", _status(415, 400)),
    _error("200 for an error", f"{N}/echo/not_streamed", lambda got: replace(got, status=200)),
    _error("param is null", f"{N}/echo/not_streamed", _member("param", None)),
    _error("param names another field", f"{N}/echo/not_streamed", _member("param", "prompt")),
    _error("param is missing", f"{N}/echo/not_streamed", _without("param")),
    _error("type is always the same", f"{N}/fault/unknown_model", _member("type", "BadRequestError")),
    _error("a number as code becomes a text", f"{N}/echo/not_streamed", _member("code", "400")),
    _error("a text as code becomes a number", "acs/completions/temperature/maximum", _code_as_number),
    _error("a refused key is not told how", f"{N}/fault/unauthorized", _header_lost("www-authenticate")),
    _error("429 does not say when to retry", f"{N}/fault/quota_exceeded", _header_lost("retry-after")),
    _error("503 does not say when to retry", f"{N}/fault/overloaded", _header_lost("retry-after")),
    _success("a member that nobody declared", "nim/smoke/completions", _member("extra", 1)),
    _success("usage is missing", "nim/smoke/completions", _without("usage")),
    _success("object is another constant", "nim/smoke/completions", _member("object", "completion")),
    _success("all completions have one id", "nim/transport/parallel", _member("id", "cmpl-" + "0" * 32)),
)
