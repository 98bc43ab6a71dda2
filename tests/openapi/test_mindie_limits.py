"""Limits of MindIE that no short body reaches: what its rules say of a prompt's figures, at the edge and past it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from isogloss_spec.document import bundle
from isogloss_spec.faults import Fault
from isogloss_spec.judge import Judge

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
AMPLE = 4_194_304
SERVER = {"maxInputTokenLen": AMPLE, "maxSeqLen": AMPLE, "maxIterTimes": 512, "topK": -1}
OFF = {"deepseek": 0, "disaggregated": 0, "plugins": 0}
PLAIN: dict[str, Any] = {
    "prompt_tokens_max": 9,
    "context_length": AMPLE,
    "messages_chars": 1,
    "empty_messages": 0,
    "unreadable_parts": 0,
    "media_parts": 0,
    "media_address_chars": 0,
    "tool_messages_without_id": 0,
    "stop_chars": 0,
    "server": SERVER | OFF,
}


@pytest.fixture(scope="module")
def judge() -> Judge:
    document = bundle(Path(__file__).parents[2] / "openapi" / "mindie.yaml")
    return Judge(document, "create_chat_completion", models={"m"}, features=frozenset())


def entry(judge: Judge, context: dict[str, Any]) -> str | None:
    """The entry of the ledger that a context breaks; None if it breaks none."""
    try:
        judge.check_prompt(judge.check(BODY), context)  # type: ignore[arg-type]
    except Fault as fault:
        return fault.entry
    return None


def test_what_no_limit_touches(judge: Judge) -> None:
    assert entry(judge, PLAIN) is None


@pytest.mark.parametrize(
    ("name", "edge", "rule"),
    [
        ("messages_chars", 4 * 1024 * 1024, "mindie/chat.completions/messages/size"),
        ("stop_chars", 32 * 1024, "mindie/chat.completions/stop/total_length"),
        ("media_parts", 20, "mindie/chat.completions/messages/media_parts"),
        ("media_address_chars", 4096, "mindie/chat.completions/messages/media_address"),
        ("prompt_tokens_max", 1024 * 1024, "mindie/chat.completions/messages/input_length"),
    ],
)
def test_a_figure_at_its_edge(judge: Judge, name: str, edge: int, rule: str) -> None:
    assert entry(judge, PLAIN | {name: edge}) is None
    assert entry(judge, PLAIN | {name: edge + 1}) == rule


@pytest.mark.parametrize(
    ("limits", "longest"),
    [
        ({"server": SERVER | OFF | {"maxInputTokenLen": 100}}, 100),
        ({"server": SERVER | OFF | {"maxSeqLen": 100}}, 99),
        ({"context_length": 100}, 99),
        ({"context_length": 100, "server": SERVER | OFF | {"maxInputTokenLen": 50, "maxSeqLen": 70}}, 50),
        ({"context_length": 100, "server": SERVER | OFF | {"maxInputTokenLen": 90, "maxSeqLen": 70}}, 69),
    ],
)
def test_the_least_limit_bounds_a_prompt(judge: Judge, limits: dict[str, Any], longest: int) -> None:
    assert entry(judge, PLAIN | limits | {"prompt_tokens_max": longest}) is None
    refused = entry(judge, PLAIN | limits | {"prompt_tokens_max": longest + 1})
    assert refused == "mindie/chat.completions/messages/input_length"
