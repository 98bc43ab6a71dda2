"""Mutants that forget a check in company, count the context wrongly, or read bodies with too much good will."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from isogloss_conformance.mutants.wire import Got, Mutant, Sent, refusal

Json = Any
N = "nim/completions"
FAULT = f"{N}/fault"
CONTEXT = 4096
"""Of the right server."""
HOTTEST = 2
COMPANY = ("top_p", "seed", "stop", "n", "stream", "top_k", "logprobs", "user")


def _forgets_beside(field: str) -> Mutant:
    """Looks at the temperature only where a certain field is not there."""

    def request(sent: Sent) -> Sent:
        heat = sent.json.get("temperature")
        if sent.json.get(field) is None or not isinstance(heat, int | float) or heat <= HOTTEST:
            return sent
        return sent.having(temperature=HOTTEST)

    return Mutant(f"forgets a bound beside {field}", f"{N}/temperature/maximum", request)


def _error_in_stream(sent: Sent, got: Got) -> Got:
    """Says 200 before it looks at the body."""
    if got.status < 400 or sent.json.get("stream") is not True:
        return got
    return Got(200, {"content-type": "text/event-stream"}, b"data: " + got.body + b"\n\ndata: [DONE]\n\n")


def _wider(sent: Sent) -> Sent:
    """Takes one token more than fits."""
    prompt, most = _sizes(sent)
    if prompt + most != CONTEXT + 1:
        return sent
    return sent.having(max_tokens=most - 1) if most > 1 else sent.having(prompt=sent.json["prompt"][1:])


def _narrower(sent: Sent) -> Sent:
    """Refuses the last token that fits."""
    prompt, most = _sizes(sent)
    return sent.having(max_tokens=most + 1) if prompt + most == CONTEXT else sent


def _sizes(sent: Sent) -> tuple[int, int]:
    """Tokens of a prompt of ids and of its answer; 0 for anything else."""
    prompt, most = sent.json.get("prompt"), sent.json.get("max_tokens")
    return (len(prompt), most) if isinstance(prompt, list) and isinstance(most, int) else (0, 0)


def _shortened(sent: Sent) -> Sent:
    """Cuts what is too long off, in place of refusing it."""
    messages = sent.json.get("messages")
    text = messages[0].get("content") if isinstance(messages, list) and isinstance(messages[0], dict) else None
    if isinstance(text, str) and text == " a" * (len(text) // 2):
        return sent.having(messages=[{"role": "user", "content": text[: 2 * (CONTEXT - 128)]}])
    return sent


def _first_value(sent: Sent) -> Sent:
    """Reads a value and looks no further."""
    try:
        value, _ = json.JSONDecoder().raw_decode(sent.body.decode())
    except (ValueError, RecursionError):
        return sent
    return replace(sent, body=json.dumps(value).encode()) if not sent.json and isinstance(value, dict) else sent


def _trailing_comma(sent: Sent) -> Sent:
    return replace(sent, body=re.sub(rb",\s*}$", b"}", sent.body))


def _json_types(sent: Sent) -> Sent:
    """Whatever has JSON in its name."""
    kind = sent.headers.get("content-type", "").partition(";")[0]
    return replace(sent, headers={**sent.headers, "content-type": "application/json"}) if "json" in kind else sent


def _breaks_over(sign: bytes) -> Callable[[Sent], Sent | Got]:
    error = {"object": "error", "message": "Oops.", "type": "InternalServerError", "param": None, "code": 500}
    return lambda sent: refusal(500, error) if sign in sent.body else sent


EDGES = (
    *map(_forgets_beside, COMPANY),
    Mutant("refuses in a stream", f"{N}/temperature/maximum", answer=_error_in_stream),
    Mutant("does not know a model in a stream", f"{FAULT}/unknown_model", answer=_error_in_stream),
    Mutant("takes one token more than fits", f"{N}/max_tokens/context", _wider),
    Mutant("refuses the last token that fits", f"{N}/max_tokens/context", _narrower),
    Mutant("cuts a long prompt off", "mindie/chat.completions/messages/input_length", _shortened),
    Mutant("reads the first of several values", f"{FAULT}/malformed_json", _first_value),
    Mutant("takes a trailing comma", f"{FAULT}/malformed_json", _trailing_comma),
    Mutant("takes whatever has JSON in its name", f"{FAULT}/unsupported_media_type", _json_types),
    Mutant("breaks down over NUL", "nim/transport/odd_texts", _breaks_over(b"\\u0000")),
    Mutant("breaks down over half of a surrogate pair", "nim/transport/odd_texts", _breaks_over(b"\\ud800b")),
)
