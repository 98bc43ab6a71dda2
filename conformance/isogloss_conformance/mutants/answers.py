"""Mutants that change an answer which is not a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from isogloss_conformance.mutants.wire import Got, Mutant, Sent

Json = Any
N = "nim/completions"
EFFECT = "nim/effects"


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


def _usage(**changed: Callable[[dict[str, Json]], Json]) -> Callable[[Got], Got]:
    """Counts tokens otherwise, with and without a stream alike."""

    def change(got: Got) -> Got:
        usage = got.json.get("usage") or {}
        return got.holding({**got.json, "usage": {**usage, **{name: made(usage) for name, made in changed.items()}}})

    return change


def _choices(change: Callable[[Json, list[Json]], Json]) -> Callable[[Got], Got]:
    """Changes each choice, given it and all of them."""

    def changed(got: Got) -> Got:
        found = got.json.get("choices") or []
        return got.holding({**got.json, "choices": [change(choice, found) for choice in found]})

    return changed


def _reversed(got: Got) -> Got:
    choices = [{**choice, "index": i} for i, choice in enumerate(reversed(got.json.get("choices") or []))]
    return got.holding({**got.json, "choices": choices})


def _improbable(choice: Json, all_choices: list[Json]) -> Json:
    logprobs = choice.get("logprobs")
    if not logprobs:
        return choice
    return {**choice, "logprobs": {**logprobs, "token_logprobs": [-9.0 for _ in logprobs["token_logprobs"]]}}


class _Handing:
    """Keeps the longest answer of those that are under way together, and gives it to all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0
        self._last: Got | None = None

    def request(self, sent: Sent) -> Sent:
        with self._lock:
            self._under_way += 1
        return sent

    def answer(self, sent: Sent, got: Got) -> Got:
        with self._lock:
            self._under_way -= 1
            handed = self._last if self._under_way and self._last else got
            self._last = got if self._under_way else None
        body = {**handed.json, "id": got.json.get("id")}
        return got.holding(body) if got.status == 200 and sent.method == "POST" else got


def _status(old: int, new: int) -> Callable[[Got], Got]:
    return lambda got: replace(got, status=new) if got.status == old else got


def _code_as_number(got: Got) -> Got:
    return got.holding({**got.json, "error": {**got.json.get("error", {}), "code": got.status}})


def _completion(usage: dict[str, Json]) -> Json:
    return usage.get("completion_tokens")


def _one_more(usage: dict[str, Json]) -> Json:
    return usage.get("prompt_tokens", 0) + 1


def _half(usage: dict[str, Json]) -> Json:
    return usage.get("completion_tokens", 0) // 2


_HANDING = _Handing()
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
    _success("the total is the completion's", f"{EFFECT}/usage_sum", _usage(total_tokens=_completion)),
    _success("a prompt counts one too many", f"{EFFECT}/prompt_tokens", _usage(prompt_tokens=_one_more)),
    _success("one choice is counted", f"{EFFECT}/completion_tokens", _usage(completion_tokens=_half)),
    _success("all ends are stops", f"{EFFECT}/length", _choices(lambda choice, _: {**choice, "finish_reason": "stop"})),
    _success(
        "all ends are stops",
        "atoma/effects/forced_length",
        _choices(lambda choice, _: {**choice, "finish_reason": "stop"}),
    ),
    _success("another model answers", f"{EFFECT}/model", _member("model", "other")),
    _success(
        "all choices say the same", f"{EFFECT}/n", _choices(lambda choice, all_: {**choice, "text": all_[0]["text"]})
    ),
    _success("the best choice comes last", "mindie/effects/best_of_all", _reversed),
    _success("log probabilities are made up", f"{EFFECT}/logprobs", _choices(_improbable)),
    Mutant("answers change hands", "nim/transport/parallel", _HANDING.request, _HANDING.answer),
    _success("all completions have one id", "nim/transport/parallel", _member("id", "cmpl-" + "0" * 32)),
)
