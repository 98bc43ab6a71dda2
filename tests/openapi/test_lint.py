"""Every finding of the linter, each shown by the real document with one thing spoilt."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import isogloss_api
import pytest
from isogloss_spec.lint import lint

Spoil = Callable[[dict[str, Any]], object]


def request(document: dict[str, Any]) -> dict[str, Any]:
    return document["components"]["schemas"]["CompletionRequest"]


def field(document: dict[str, Any], name: str) -> dict[str, Any]:
    return request(document)["properties"][name]


def rule(document: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return request(document)["x-rules"][number]


def post(document: dict[str, Any]) -> dict[str, Any]:
    return document["paths"]["/v1/completions"]["post"]


FAULTS: dict[str, tuple[Spoil, str]] = {
    "a misspelt extension": (lambda d: field(d, "n").update({"x-defualt": 1}), "CompletionRequest.n"),
    "a source that says neither": (lambda d: field(d, "n").update({"x-source": "me"}), "x-source"),
    "a rule without a reject body": (lambda d: rule(d).pop("reject"), "x-rules/0"),
    "an operation without faults": (lambda d: post(d).pop("x-faults"), "create_completion"),
    "an unknown fault": (lambda d: post(d)["x-faults"].append("oops"), "there is no fault oops"),
    "a status that no fault has": (
        lambda d: post(d)["responses"].update({"418": {"description": "x"}}),
        "418 is declared by either",
    ),
    "a fault whose status is not declared": (lambda d: post(d)["responses"].pop("404"), "404 is declared by"),
    "an unknown error body": (lambda d: d["x-faults"]["rule"].update(body="round"), "no error body round"),
    "a keyword that models lose": (lambda d: field(d, "n").update({"not": {"const": 3}}), "not has no place"),
    "a default that clients would send": (lambda d: field(d, "n").update(default=1), "default has no place"),
    "a number without bounds": (lambda d: field(d, "n").pop("maximum"), "a number without a maximum"),
    "an integer beyond 64 bits": (lambda d: field(d, "n").update(maximum=2**70), "beyond 64 bits"),
    "a field without a source": (lambda d: field(d, "n").pop("x-source"), "n: no x-source"),
    "a field without a description": (lambda d: field(d, "n").pop("description"), "n: no description"),
    "an answer without a source": (
        lambda d: d["components"]["schemas"]["Usage"].pop("x-source"),
        "Usage: no x-source",
    ),
    "a branch that is no component": (
        lambda d: field(d, "prompt")["anyOf"].append({"type": "integer", "minimum": 0, "maximum": 1}),
        "a branch is not a component",
    ),
    "branches that look alike": (
        lambda d: field(d, "prompt")["anyOf"].append({"$ref": "#/components/schemas/StopText"}),
        "2 branches look alike",
    ),
    "a rule that does not compile": (lambda d: rule(d).update(rule="eff.n >"), "eff.n >"),
    "a rule over no such field": (lambda d: rule(d).update(rule="eff.m == null"), "reads m, which there is not"),
    "a request rule that reads ctx": (
        lambda d: rule(d).update(rule="eff.n == null || ctx.prompts > 0"),
        "knows no ctx",
    ),
    "an id of another place": (lambda d: rule(d).update(id="nim/chat/n/x"), "the id must begin with"),
    "an id that occurs twice": (lambda d: rule(d, 1).update(id=rule(d)["id"]), "the id occurs 2 times"),
    "an accept body that breaks the rule": (
        lambda d: rule(d).update(accept=[{"n": 2, "best_of": 1}]),
        "an accept body breaks nim/completions/best_of/at_least_n",
    ),
    "a reject body that breaks nothing": (lambda d: rule(d).update(reject=[{}]), "a reject body breaks nothing"),
    "a reject body that breaks another rule": (
        lambda d: rule(d, 1).update(reject=[{"n": 2, "best_of": 1}]),
        "breaks nim/completions/best_of/at_least_n",
    ),
    "a minimal body that is none": (lambda d: request(d)["x-minimal"].pop("prompt"), "the minimal body breaks"),
    "a bound that nothing satisfies": (lambda d: field(d, "user").update(maxLength=0), "no accepted body found"),
}


@pytest.mark.parametrize("name", isogloss_api.DOCUMENTS)
def test_the_documents_have_no_findings(name: str) -> None:
    assert lint(isogloss_api.document(name)) == []


@pytest.mark.parametrize(("spoil", "wanted"), FAULTS.values(), ids=FAULTS)
def test_a_spoilt_document_is_found(nim: dict[str, Any], spoil: Spoil, wanted: str) -> None:
    document = copy.deepcopy(nim)
    spoil(document)
    findings = lint(document)
    assert any(wanted in finding for finding in findings), findings
