"""Errors of ACS exactly as its own text shows them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.server import Server

CHAT = (
    "This API serves Base models, which have no chat format: send POST /v1/completions with a prompt instead of POST "
    "/v1/chat/completions with messages."
)
PRINTED = [
    (
        "/acs/v1/completions",
        {"prompt": "The sky is", "max_tokens": "2"},
        ("Invalid type for 'max_tokens': expected a number.", "max_tokens", "invalid_request"),
    ),
    (
        "/acs/v1/completions",
        {"prompt": "The sky is", "max_tokens": 16001, "n": 2},
        (
            "At most 32000 generated tokens in all: n = 2 times max_tokens = 16001 for each of 1 prompts is 32002.",
            "max_tokens",
            "invalid_request",
        ),
    ),
    ("/acs/v1/chat/completions", {"messages": []}, (CHAT, None, "chat_completions_unsupported")),
]


@pytest.mark.parametrize("given", [None, "mine", "not well-formed"])
@pytest.mark.parametrize(("path", "body", "wanted"), PRINTED)
def test_printed_errors(
    scripted: Server, path: str, body: dict[str, Any], wanted: tuple[str, str | None, str], given: str | None
) -> None:
    message, param, code = wanted
    with scripted.client() as client:
        answer = client.post(path, json={"model": "scripted", **body}, headers={"X-Request-Id": given} if given else {})
    found = answer.json()
    request_id = found.pop("request_id")
    assert answer.status_code == 400
    assert found == {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    assert re.fullmatch(r"req_[0-9a-f]{32}", request_id)
    assert answer.headers["x-request-id"] == ("mine" if given == "mine" else request_id.removeprefix("req_"))
