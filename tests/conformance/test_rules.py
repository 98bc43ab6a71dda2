"""The rules step notices a server that breaks a rule: here, one that follows another document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import isogloss_api
import pytest
from isogloss_conformance.client import Client
from isogloss_conformance.faults.step import FaultsStep
from isogloss_conformance.results import Status
from isogloss_conformance.rules.step import RulesStep
from isogloss_conformance.session import Facts, Session
from support.server import Server

FEATURES = frozenset({"best_of"})


def body(document: dict[str, Any]) -> dict[str, Any]:
    return document["components"]["schemas"]["CompletionRequest"]


def change(document: dict[str, Any], field: str, **members: Any) -> None:
    body(document)["properties"][field].update(members)


def rule(document: dict[str, Any], rule_id: str, **members: Any) -> None:
    next(rule for rule in body(document)["x-rules"] if rule["id"] == rule_id).update(members)


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "nim/completions/logprobs/maximum": lambda d: change(d, "logprobs", maximum=4),
    "nim/completions/frequency_penalty/minimum": lambda d: change(d, "frequency_penalty", minimum=-3),
    "nim/completions/top_p/exclusiveMinimum": lambda d: change(d, "top_p", exclusiveMinimum=-1),
    "nim/completions/seed/nullable": lambda d: change(d, "add_special_tokens", type=["boolean", "null"]),
    "nim/completions/n/type": lambda d: d["x-faults"]["wrong_type"].update(status=400),
    "nim/completions/echo/not_streamed": lambda d: rule(d, "nim/completions/echo/not_streamed", param="stream"),
    "nim/completions/max_tokens/context": lambda d: d["x-faults"]["context_overflow"].update(type="Other"),
}


@pytest.mark.parametrize("entry_id", CHANGES)
def test_a_difference_is_found(scripted: Server, entry_id: str) -> None:
    document = isogloss_api.document("nim")
    CHANGES[entry_id](document)
    entry_id = entry_id.replace("seed/nullable", "add_special_tokens/nullable")
    session = Session(document, Client(f"{scripted.url}/nim"), Facts("scripted", 4096, FEATURES))
    check = next(check for check in RulesStep(session).checks() if check.id == entry_id)
    result = check.run()
    assert result.status is Status.FAIL
    assert result.curl.startswith("curl ")
    assert result.expected
    assert result.got


def test_a_feature_that_the_server_lacks_is_no_pass(session: Callable[..., Session]) -> None:
    checks = {check.id: check for check in RulesStep(session("atoma")).checks()}
    assert checks["atoma/completions/suffix/nullable"].run().status is Status.PASS
    assert checks["atoma/completions/suffix/type"].run().status is Status.UNSUPPORTED


@pytest.mark.parametrize("fault", ["malformed_json", "unknown_model", "body_too_large", "method_not_allowed"])
def test_a_fault_with_another_look_is_found(scripted: Server, fault: str) -> None:
    document = isogloss_api.document("nim")
    document["x-faults"][fault]["type"] = "Other"
    session = Session(document, Client(f"{scripted.url}/nim"), Facts("scripted", 4096, FEATURES))
    check = next(check for check in FaultsStep(session).checks() if check.id == f"nim/completions/fault/{fault}")
    assert check.run().status is Status.FAIL
