"""CEL: what the rules rely on, and a second engine that must agree with the first."""

from __future__ import annotations

from typing import Any

import cel as second_engine
import pytest
from isogloss_spec import Fault, Judge
from isogloss_spec.effective import Effective
from isogloss_spec.pairs import Pairs
from isogloss_spec.rules import Expression, Rule, RuleError, RuleList

ENTRY = {
    "id": "d/o/a/positive",
    "stage": "request",
    "rule": "eff.a == null || eff.a > 0",
    "fault": "rule",
    "param": "a",
    "message": "'a' ({a}) must be positive.",
    "values": {"a": "eff.a"},
}


def variables(**fields: Any) -> dict[str, Any]:
    return {"self": fields, "eff": fields, "ctx": {}}


def test_a_broken_rule_carries_its_numbers() -> None:
    with pytest.raises(Fault) as caught:
        Rule(ENTRY).check(variables(a=-3))
    assert caught.value.values["message"] == "'a' (-3) must be positive."
    assert (caught.value.entry, caught.value.keyword, caught.value.param) == ("d/o/a/positive", "positive", "a")


def test_a_rule_that_ends_in_an_error_never_passes() -> None:
    rule = Rule(ENTRY | {"rule": "eff.a.b > 0"})
    with pytest.raises(RuleError):
        rule.check(variables(a=1))
    with pytest.raises(RuleError):
        RuleList([rule]).check(variables(a=1))


def test_a_rule_that_gives_no_boolean_never_passes() -> None:
    with pytest.raises(RuleError):
        Rule(ENTRY | {"rule": "eff.a + 1"}).check(variables(a=1))


def test_a_rule_that_does_not_compile_says_so() -> None:
    with pytest.raises(RuleError, match=r"eff\.a >"):
        Rule(ENTRY | {"rule": "eff.a >"})


def test_only_fields_that_are_read_reach_cel() -> None:
    expression = Expression("eff.a > 0")
    assert expression.value(variables(a=1, prompt=object())) is True


def test_integers_beyond_64_bits_are_taken_as_numbers() -> None:
    assert Expression("double(eff.a) > 1e20").value(variables(a=10**30)) is True
    assert Expression("eff.a != null").value(variables(a={"deep": [10**400]})) is True


def test_a_list_of_rules_reports_the_first_that_breaks() -> None:
    rules = RuleList([Rule(ENTRY), Rule(ENTRY | {"id": "d/o/a/small", "rule": "eff.a < 5"})])
    rules.check(variables(a=3))
    with pytest.raises(Fault) as caught:
        rules.check(variables(a=7))
    assert caught.value.entry == "d/o/a/small"


def test_a_second_engine_agrees_on_every_rule(nim: dict[str, Any]) -> None:
    judge = Judge(nim, "create_completion")
    pairs = Pairs(nim, "create_completion")
    effective = Effective(nim, {"$ref": "#/components/schemas/CompletionRequest"})
    checked = 0
    for rule in judge.rules:
        if rule.stage == "prompt" or "isJsonObject" in rule.expression.text:
            continue
        bodies = [(body, True) for body in rule.entry["accept"]] + [(body, False) for body in rule.entry["reject"]]
        for patch, wanted in bodies:
            body = pairs.minimal | patch
            eff = effective.of(body)
            eff = {name: value for name, value in eff.items() if name in rule.fields}
            assert second_engine.evaluate(rule.expression.text, {"self": body, "eff": eff}) is wanted, rule.id
            checked += 1
    assert checked > 40
