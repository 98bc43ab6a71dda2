"""Mutants that change what is asked: they take what they must refuse, refuse what they must take, or ignore a field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from isogloss_spec.pairs import UNKNOWN_MEMBER

from isogloss_conformance.mutants.wire import Got, Mutant, Sent, refusal

Json = Any
N = "nim/completions"
FAULT = f"{N}/fault"
EFFECT = "nim/effects"


def _ignores(field: str, killer: str) -> Mutant:
    return Mutant(f"ignores {field}", killer, lambda sent: sent.having(**{field: ...}) if field in sent.json else sent)


def _first_of(field: str, killer: str) -> Mutant:
    """Takes a list and reads no further than its first text."""

    def request(sent: Sent) -> Sent:
        value = sent.json.get(field)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            return sent
        return sent.having(**{field: value[:1]})

    return Mutant(f"reads the first of {field}", killer, request)


def _last_of(field: str, killer: str) -> Mutant:
    """Takes a list and reads its last item alone."""
    return Mutant(
        f"reads the last of {field}",
        killer,
        lambda sent: sent.having(**{field: sent.json[field][-1:]}) if sent.json.get(field) else sent,
    )


def _reads(name: str, killer: str, field: str, wrong: Json, as_: Json) -> Mutant:
    """Reads one value of a field as another."""

    def request(sent: Sent) -> Sent:
        value = sent.json.get(field)
        return sent.having(**{field: as_}) if type(value) is type(wrong) and value == wrong else sent

    return Mutant(name, killer, request)


def _when(name: str, killer: str, holds: Callable[[dict[str, Json]], bool], **members: Json) -> Mutant:
    """Changes the body where a condition holds."""
    return Mutant(name, killer, lambda sent: sent.having(**members) if sent.json and holds(sent.json) else sent)


def _fails(name: str, killer: str, holds: Callable[[bytes], bool]) -> Mutant:
    """Breaks down over some bodies."""
    return Mutant(name, killer, lambda sent: _broken_down() if holds(sent.body) else sent)


def _broken_down() -> Got:
    return refusal(
        500, {"object": "error", "message": "Oops.", "type": "InternalServerError", "param": None, "code": 500}
    )


def _lenient_parser(sent: Sent) -> Sent:
    """Python's own parser: the last of two equal names wins, NaN is a number."""
    return replace(sent, body=json.dumps(sent.json).replace("NaN", "null").encode()) if sent.json else sent


def _any_type(sent: Sent) -> Sent:
    headers = {**sent.headers, "content-type": "application/json"}
    return replace(sent, headers=headers) if sent.method == "POST" else sent


def _no_charset(sent: Sent) -> Sent:
    kind = sent.headers.get("content-type", "").partition(";")[0]
    return replace(sent, headers={**sent.headers, "content-type": kind}) if kind else sent


def _is_large(sent: Sent) -> Sent:
    return replace(sent, body=sent.body.rstrip())


def _no_chunks(sent: Sent) -> Sent | Got:
    return refusal(411, {"error": "length required"}) if sent.chunked else sent


def _strict(sent: Sent) -> Sent | Got:
    error = {"code": "INVALID_REQUEST", "message": "Unknown field."}
    return refusal(400, {"error": error}) if UNKNOWN_MEMBER in sent.json else sent


def _open_list(sent: Sent) -> Sent:
    return sent.with_key() if sent.path.endswith("/models") else sent


def _any_key(sent: Sent) -> Sent:
    return sent.with_key() if "authorization" in sent.headers else sent


def _open_doubles(sent: Sent) -> Sent:
    """The guard looks at the path as it stands, the router merges slashes."""
    merged = re.sub("//+", "/", sent.path)
    return sent if merged == sent.path else replace(sent.with_key(), path=merged)


def _open_alias(sent: Sent) -> Sent:
    """A second path to the same handler, which nobody guards."""
    prefix, found, _ = sent.path.partition("/invocations")
    return replace(sent.with_key(), path=f"{prefix}/v1/completions") if found else sent


def _no_slash(sent: Sent) -> Sent:
    return replace(sent, path=sent.path.rstrip("/"))


REQUESTS = (
    _reads("an upper bound is one too high", f"{N}/logprobs/maximum", "logprobs", 6, 5),
    _reads("an upper bound is one too low", f"{N}/logprobs/maximum", "logprobs", 5, 6),
    _reads("a lower bound is one too low", f"{N}/logprobs/minimum", "logprobs", -1, 0),
    _reads("a lower bound is one too high", f"{N}/logprobs/minimum", "logprobs", 0, -1),
    _reads("an exclusive bound is inclusive", f"{N}/top_p/exclusiveMinimum", "top_p", 0, 0.1),
    _when(
        "an upper bound is a thousandth too high",
        f"{N}/temperature/maximum",
        lambda body: 2 < _number(body.get("temperature")) < 2.002,
        temperature=2,
    ),
    _when(
        "a lower bound is a thousandth too low",
        f"{N}/presence_penalty/minimum",
        lambda body: -2.002 < _number(body.get("presence_penalty")) < -2,
        presence_penalty=-2,
    ),
    _when(
        "an exclusive bound excludes a little more",
        f"{N}/top_p/exclusiveMinimum",
        lambda body: 0 < _number(body.get("top_p")) < 1e-4,
        top_p=0,
    ),
    _reads("null is taken where it is forbidden", f"{N}/add_special_tokens/type", "add_special_tokens", None, True),
    _reads("null is refused where it is allowed", f"{N}/seed/nullable", "seed", None, "null"),
    _reads("a number may be a text", f"{N}/n/type", "n", "1", 1),
    _reads("true counts as 1", f"{N}/n/type", "n", True, 1),
    _ignores(UNKNOWN_MEMBER, f"{N}/body/additionalProperties"),
    _when(
        "a missing model is the first one", f"{N}/model/required", lambda body: "model" not in body, model="scripted"
    ),
    _when("any model is served", f"{FAULT}/unknown_model", lambda body: "model" in body, model="scripted"),
    _when(
        "the context is never full",
        f"{N}/max_tokens/context",
        lambda body: isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 4096,
        max_tokens=1,
    ),
    _when(
        "the vocabulary has no end",
        f"{N}/prompt/vocabulary",
        lambda body: body.get("prompt") == [2**31 - 1],
        prompt="a",
    ),
    _when(
        "a rule of two fields is missing",
        f"{N}/echo/not_streamed",
        lambda body: bool(body.get("echo") and body.get("stream")),
        echo=False,
    ),
    _when("a rule of two fields fires for one", f"{N}/echo", lambda body: body.get("echo") is True, stream=True),
    _when(
        "best_of may be below n",
        f"{N}/best_of",
        lambda body: _below(body.get("best_of"), body.get("n")),
        best_of=...,
    ),
    _fails("breaks down over bad UTF-8", f"{FAULT}/malformed_json", lambda body: b"\xff" in body),
    _fails("breaks down over deep nesting", f"{FAULT}/malformed_json", lambda body: body.startswith(b"[[[[")),
    _fails("breaks down over an empty body", f"{FAULT}/malformed_json", lambda body: not body),
    Mutant("takes two members of one name, and NaN", f"{FAULT}/malformed_json", _lenient_parser),
    Mutant("takes any media type", f"{FAULT}/unsupported_media_type", _any_type),
    Mutant("takes any charset", "nim/transport/charset", _no_charset),
    Mutant("takes bodies of any size", f"{FAULT}/body_too_large", _is_large),
    Mutant("refuses chunks", "nim/transport/chunked", _no_chunks),
    Mutant("lists models without a key", "nim/models/fault/unauthorized", _open_list),
    Mutant("takes any key", f"{FAULT}/unauthorized", _any_key),
    Mutant("a path with two slashes needs no key", "nim/transport/keyless", _open_doubles),
    Mutant("a second path needs no key", "nim/transport/keyless", _open_alias),
    Mutant("forgives a slash", "nim/transport/trailing_slash", _no_slash),
    Mutant("refuses fields that it does not know", "atoma/smoke/unknown_field", _strict),
    _ignores("n", f"{EFFECT}/n"),
    _ignores("stop", f"{EFFECT}/stop"),
    _ignores("seed", f"{EFFECT}/seed"),
    _ignores("echo", f"{EFFECT}/echo"),
    _ignores("logit_bias", f"{EFFECT}/bias"),
    _ignores("presence_penalty", f"{EFFECT}/presence_penalty"),
    _ignores("frequency_penalty", f"{EFFECT}/frequency_penalty"),
    _ignores("repetition_penalty", f"{EFFECT}/repetition_penalty"),
    _ignores("max_tokens", f"{EFFECT}/max_tokens"),
    _ignores("temperature", f"{EFFECT}/temperature"),
    _ignores("top_k", f"{EFFECT}/top_k"),
    _ignores("top_p", f"{EFFECT}/top_p"),
    _ignores("min_p", f"{EFFECT}/min_p"),
    _ignores("logprobs", f"{EFFECT}/logprobs"),
    _ignores("prompt_logprobs", f"{EFFECT}/prompt_logprobs"),
    _ignores("include_stop_str_in_output", f"{EFFECT}/include_stop"),
    _ignores("return_tokens_as_token_ids", f"{EFFECT}/token_ids"),
    _ignores("guided_choice", f"{EFFECT}/guided_choice"),
    _ignores("guided_regex", f"{EFFECT}/guided_regex"),
    _ignores("guided_json", f"{EFFECT}/guided_json"),
    _ignores("guided_grammar", f"{EFFECT}/guided_grammar"),
    _ignores("nvext", f"{EFFECT}/nvext"),
    _ignores("min_tokens", f"{EFFECT}/min_tokens"),
    _ignores("ignore_eos", f"{EFFECT}/ignore_eos"),
    _ignores("stop_token_ids", "acs/effects/stop_token_ids"),
    _ignores("stop_token_ids", "mindie/effects/stop_tokens"),
    _ignores("best_of", f"{EFFECT}/best_of"),
    _ignores("best_of", "atoma/effects/best_of"),
    _ignores("best_of", "mindie/effects/best_of_all"),
    _ignores("use_beam_search", "mindie/effects/beams"),
    _ignores("skip_special_tokens", "acs/effects/skip_special_tokens"),
    _ignores("skip_special_tokens", "mindie/effects/skip_special_tokens"),
    _ignores("return_token_ids", "acs/effects/return_token_ids"),
    _ignores("guided_whitespace_pattern", f"{EFFECT}/whitespace"),
    _ignores("presence_penalty", "acs/effects/presence_penalty"),
    _ignores("presence_penalty", "mindie/effects/presence_penalty"),
    _ignores("frequency_penalty", "acs/effects/frequency_penalty"),
    _ignores("frequency_penalty", "mindie/effects/frequency_penalty"),
    _last_of("messages", "mindie/effects/messages"),
    _first_of("stop", f"{EFFECT}/stop"),
    _first_of("prompt", f"{EFFECT}/prompts"),
)


def _number(value: Json) -> float:
    """A number of the body; 0 for anything else."""
    return value if isinstance(value, int | float) else 0


def _below(left: Json, right: Json) -> bool:
    return isinstance(left, int) and isinstance(right, int) and left < right
