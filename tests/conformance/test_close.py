"""Bounds of real numbers are probed close to them, on both sides, with bodies about which the judge agrees."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.rules.close import INWARDS, closer
from isogloss_conformance.session import Session
from isogloss_spec.ledger import Entry
from isogloss_spec.pairs import Pair, Pairs
from isogloss_spec.samples import NEARNESS, near

LIMITS = (
    st.floats(-1e300, 1e300).filter(lambda limit: limit == 0 or abs(limit) > 1e-300).map(lambda x: float(f"{x:.3g}"))
)


@given(LIMITS, st.sampled_from((1, -1)))
def test_a_near_number_is_on_its_side_and_near(limit: float, direction: int) -> None:
    distance = (near(limit, direction) - limit) * direction
    assert 0 < distance <= 2 * NEARNESS * (abs(limit) or 1)


def pair_of(session: Session, entry_id: str) -> Pair:
    entry = next(entry for entry in session.entries if entry.id == entry_id)
    pairs = Pairs(session.document, session.main.id, model=session.facts.model)
    return closer(pairs.of(entry), session.document, Forecaster(session).judge)


@pytest.mark.parametrize(
    ("entry_id", "accept", "reject"),
    [
        ("nim/completions/temperature/maximum", [2, 1.999998], [2.000002]),
        ("nim/completions/presence_penalty/minimum", [-2, -1.999998], [-2.000002]),
        ("nim/completions/top_p/exclusiveMinimum", [1e-06], [0, -1e-06]),
        ("mindie/chat.completions/top_p/exclusiveMinimum", [1.000001e-06], [1e-06, 9.99999e-07]),
        ("nim/completions/n/maximum", [128], [129]),
    ],
)
def test_both_sides_of_a_bound(
    session: Callable[..., Session], entry_id: str, accept: list[float], reject: list[float]
) -> None:
    dialect, _, field, _ = entry_id.split("/")
    pair = pair_of(session(dialect), entry_id)
    assert [body[field] for body in pair.accept] == accept
    assert [body[field] for body in pair.reject] == reject


def test_bounds_below_lists_and_unions_are_close_too(session: Callable[..., Session]) -> None:
    place = "mindie/chat.completions/stop_token_ids.StopTokens.items/maximum"
    assert pair_of(session("mindie"), place).reject[0]["stop_token_ids"] == [1, 1.700002e308]


def test_where_another_rule_is_in_the_way_the_known_body_stays(session: Callable[..., Session]) -> None:
    found = pair_of(session("nim"), "nim/completions/logit_bias.LogitBias.values/maximum")
    assert found.accept[0]["logit_bias"] == {"0": 1}
    assert found.reject[0]["logit_bias"] == {"0": 3.000003e38}


def test_bounds_of_whole_numbers_and_other_keywords_stay_as_they_are(session: Callable[..., Session]) -> None:
    found = session("nim")
    pairs = Pairs(found.document, found.main.id)
    judge = Forecaster(found).judge

    def is_real(entry: Entry) -> bool:
        return entry.keyword in INWARDS and "number" in str(entry.steps[-1].schema.get("type"))

    others = [pairs.of(entry) for entry in found.entries if entry.kind != "fault" and not is_real(entry)]
    assert len(others) > 50
    assert all(closer(pair, found.document, judge) is pair for pair in others)
