"""The answers that MindIE's manual shows are answers by our document, but for slips of the manual, named one by one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from isogloss_spec.document import bundle
from jsonschema_rs import Draft202012Validator, Registry

EXAMPLES = json.loads((Path(__file__).parents[1] / "examples" / "mindie.json").read_text())
ANSWERS, STREAMS = EXAMPLES["answers"], EXAMPLES["streams"]
OPENAPI = Path(__file__).parents[2] / "openapi"


@pytest.fixture(scope="module")
def validators() -> dict[str, Any]:
    registry = Registry([("urn:mindie", bundle(OPENAPI / "mindie.yaml"))])
    return {
        name: Draft202012Validator({"$ref": f"urn:mindie#/components/schemas/{name}"}, registry=registry)
        for name in ("ChatCompletion", "ChatChunk")
    }


def no_calls(answer: Any) -> None:
    """Says `null`, or nothing at all, where there are no calls; the manual's other answers say `[]`."""
    for choice in answer["choices"]:
        choice["message"]["tool_calls"] = choice["message"].get("tool_calls") or []


def no_logprobs(answer: Any) -> None:
    """An older answer, which leaves `logprobs` out."""
    for choice in answer["choices"]:
        choice.setdefault("logprobs", None)


def no_details(chunk: Any) -> None:
    """Leaves out the details that the same stream's other last chunk has."""
    chunk["usage"].setdefault("prompt_tokens_details", {"cached_tokens": 0})


SLIPS = {"first": [no_calls, no_logprobs], "two sequences": [no_calls]}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_of_the_manual(validators: dict[str, Any], name: str) -> None:
    answer = copy.deepcopy(ANSWERS[name])
    for slip in SLIPS.get(name, ()):
        assert not validators["ChatCompletion"].is_valid(answer)
        slip(answer)
    validators["ChatCompletion"].validate(answer)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_of_the_manual(validators: dict[str, Any], name: str) -> None:
    slips = [chunk for chunk in STREAMS[name] if not validators["ChatChunk"].is_valid(chunk)]
    assert len(slips) == (1 if name == "two sequences" else 0)
    for chunk in copy.deepcopy(slips):
        no_details(chunk)
        validators["ChatChunk"].validate(chunk)
