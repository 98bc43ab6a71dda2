"""What stands beside a refused body, and bodies at the end of the context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from isogloss_conformance.client import Answer
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.rules.bystanders import Bystanders
from isogloss_conformance.rules.edges import Edge
from isogloss_conformance.session import Session
from isogloss_spec.ledger import Entry
from isogloss_spec.pairs import Pairs

Make = Callable[..., Session]
CONTEXT = 4096


def entry(made: Session, end: str) -> Entry:
    return next(found for found in made.entries if found.id.endswith(end))


def around(made: Session, name: str, value: Any) -> Iterator[list[set[str]]]:
    """Names of the fields beside a refused value, for several places in the entry's row of bodies."""
    forecaster = Forecaster(made)
    bystanders = Bystanders(made, forecaster, Pairs(made.document, made.main.id, model=made.facts.model))
    body = {**made.minimal, "max_tokens": 1, name: value}
    for number in range(3):
        found = list(bystanders.beside(entry(made, f"/{name}/minimum"), body, number))
        assert {forecaster.of(variant).faults[0].param for variant in found} == {name}
        yield [variant.keys() - body.keys() for variant in found]


@pytest.mark.parametrize("dialect", ["nim", "atoma", "acs", "mindie"])
def test_each_body_meets_another_field_and_then_many(session: Make, dialect: str) -> None:
    found = list(around(session(dialect), "temperature", -1))
    alone = [frozenset(one) for one, _ in found]
    assert [len(one) for one in alone] == [1, 1, 1]
    assert len(set(alone)) == 3
    for _, many in found:
        assert {"stream", "seed", "top_p", "stop", "n"} <= many


def test_what_the_server_refuses_alone_stands_beside_nothing(session: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session("nim")
    monkeypatch.setattr(
        made.client, "send", lambda request: Answer(400 if b"seed" in request.body else 200, {}, b"", 0)
    )
    for beside in around(made, "temperature", -1):
        assert all("seed" not in names for names in beside)


@pytest.mark.parametrize("dialect", ["nim", "atoma", "acs"])
def test_token_ids_reach_the_end_of_the_context(session: Make, dialect: str) -> None:
    made = session(dialect)
    edge, rule = Edge(made, Forecaster(made)), entry(made, "/max_tokens/context")
    fitting, beyond = (
        {len(body["prompt"]) + body["max_tokens"] for body in bodies}
        for bodies in (edge.accepted(rule), edge.refused(rule))
    )
    assert (fitting, beyond) == ({CONTEXT}, {CONTEXT + 1})


def test_a_text_is_as_long_as_the_server_says(session: Make) -> None:
    made = session("mindie")
    edge, rule = Edge(made, Forecaster(made)), entry(made, "/messages/input_length")
    fitting, beyond = (
        [len(body["messages"][0]["content"]) for body in side(rule)] for side in (edge.accepted, edge.refused)
    )
    assert beyond == [fitting[0] + len(" a")]


def test_other_rules_have_no_edge(session: Make) -> None:
    made = session("nim")
    edge = Edge(made, Forecaster(made))
    assert not [*edge.accepted(entry(made, "/n/maximum")), *edge.refused(entry(made, "/prompt/vocabulary"))]
