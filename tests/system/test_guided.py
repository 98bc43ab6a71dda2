"""Guided decoding over HTTP."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jsonschema_rs
import pytest
from support.server import Server

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
EXPLOSIVE = ["((a|b|ab){1,300}){1,300}c", "(a{1000}){1000}", "(x+x+)+y", r"(\w{1,50}){1,50}"]
KINDS: list[tuple[dict[str, Any], str]] = [
    ({"guided_json": PERSON}, "json"),
    ({"guided_json": json.dumps(PERSON), "guided_whitespace_pattern": ""}, "json"),
    ({"guided_json": PERSON, "guided_decoding_backend": "outlines"}, "json"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}}, "json"),
    ({"nvext": {"guided_json": PERSON}}, "json"),
    ({"guided_regex": "[a-z]{3}-[0-9]{2}"}, "[a-z]{3}-[0-9]{2}"),
    ({"nvext": {"guided_regex": "ab?c"}}, "ab?c"),
    ({"guided_choice": ["positive", "negative"]}, "positive|negative"),
    ({"guided_grammar": 'start: "a" ("b" | "c")'}, "a[bc]"),
    ({"guided_grammar": 'root ::= "x" [0-9]'}, "x[0-9]"),
]


def complete(server: Server, **fields: Any) -> httpx.Response:
    model = httpx.get(f"{server.url}/nim/v1/models").json()["data"][0]["id"]
    body = {"model": model, "prompt": "Person:", "max_tokens": 300, "seed": 3, **fields}
    return httpx.post(f"{server.url}/nim/v1/completions", json=body, timeout=60)


def chat(server: Server, form: dict[str, Any]) -> httpx.Response:
    model = httpx.get(f"{server.url}/mindie/v1/models").json()["data"][0]["id"]
    messages = [{"role": "user", "content": "Make up a person."}]
    body = {"model": model, "messages": messages, "max_tokens": 300, "seed": 3, "response_format": form}
    return httpx.post(f"{server.url}/mindie/v1/chat/completions", json=body, timeout=60)


def check(text: str, form: str) -> None:
    if form == "json":
        assert jsonschema_rs.is_valid(PERSON, json.loads(text))
    else:
        assert re.fullmatch(form, text)


@pytest.mark.parametrize(("fields", "form"), KINDS)
def test_each_kind(scripted: Server, fields: dict[str, Any], form: str) -> None:
    answer = complete(scripted, n=2, **fields)
    assert answer.status_code == 200, answer.text
    for choice in answer.json()["choices"]:
        assert choice["finish_reason"] == "stop"
        check(choice["text"], form)


@pytest.mark.model
@pytest.mark.parametrize(("fields", "form"), KINDS)
def test_each_kind_with_a_real_model(real: Server, fields: dict[str, Any], form: str) -> None:
    answer = complete(real, n=2, **fields)
    assert answer.status_code == 200, answer.text
    for choice in answer.json()["choices"]:
        assert choice["finish_reason"] == "stop"
        check(choice["text"], form)


@pytest.mark.model
def test_a_busy_batch_of_guides(real: Server) -> None:
    """Guided and free requests side by side, each as if it were alone."""
    asks = [{"guided_json": PERSON}, {"guided_regex": "[a-z]{5}"}, {"guided_choice": ["no", "yes"]}, {}]
    alone = [complete(real, temperature=0, max_tokens=60, **fields).json()["choices"] for fields in asks]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: complete(real, temperature=0, max_tokens=60, **asks[i % 4]), range(8)))
    texts = [answer.json()["choices"][0]["text"] for answer in found]
    assert all(json.loads(text) for text in texts[::4])
    assert texts[1] == texts[5] == alone[1][0]["text"]
    assert texts[2] == texts[6] == alone[2][0]["text"]


@pytest.mark.parametrize("form", [{"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}])
def test_chat(scripted: Server, form: dict[str, Any]) -> None:
    answer = chat(scripted, form)
    assert answer.status_code == 200, answer.text
    [choice] = answer.json()["choices"]
    assert choice["finish_reason"] == "stop"
    check(choice["message"]["content"], "json")


def test_a_stream_follows_too(scripted: Server) -> None:
    answer = complete(scripted, guided_regex="[a-z]{6}", stream=True)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert re.fullmatch("[a-z]{6}", "".join(event["choices"][0]["text"] for event in events))


SECRET = "s3cr3t"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"guided_regex": f"({SECRET}"}, "guided_regex"),
    ({"guided_grammar": SECRET}, "guided_grammar"),
    ({"guided_json": {"type": SECRET}}, "guided_json"),
    ({"guided_json": {"type": "array", "uniqueItems": True, "title": SECRET}}, "guided_json"),
    ({"guided_json": {}, "guided_whitespace_pattern": f"({SECRET}"}, "guided_whitespace_pattern"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": SECRET}}}},
        "response_format",
    ),
    ({"nvext": {"guided_regex": f"({SECRET}"}}, "nvext.guided_regex"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fields", "param"), WRONG)
def test_what_cannot_be_followed_is_refused(scripted: Server, fields: dict[str, Any], param: str, stream: bool) -> None:
    answer = complete(scripted, stream=stream, **fields)
    assert answer.status_code == 400
    error = answer.json()
    assert error["param"] == param
    assert param in error["message"]
    assert SECRET not in answer.text


def test_chat_refuses_in_its_own_way(scripted: Server) -> None:
    answer = chat(scripted, {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": SECRET}}})
    assert answer.status_code == 422
    assert "response_format" in answer.json()["error"]
    assert SECRET not in answer.text


@pytest.mark.parametrize("name", ["scripted", pytest.param("real", marks=pytest.mark.model)])
def test_explosive_patterns_harm_nobody(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    with ThreadPoolExecutor(8) as pool:
        hostile = [pool.submit(complete, server, guided_regex=pattern, max_tokens=6) for pattern in EXPLOSIVE]
        begun = time.perf_counter()
        assert complete(server, max_tokens=2).status_code == 200
        assert time.perf_counter() - begun < 30
        assert {answer.result().status_code for answer in hostile} <= {200, 400}
        assert time.perf_counter() - begun < 90
