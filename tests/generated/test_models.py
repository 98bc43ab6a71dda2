"""Generated models and the judge must say the same of every body."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import isogloss_api
import pytest
from hypothesis import given, settings
from isogloss_api.nim.requests import CompletionRequest
from isogloss_spec.explain import Explainer
from isogloss_spec.ledger import Entry, ledger
from isogloss_spec.pairs import Pairs
from pydantic import ValidationError

NIM = isogloss_api.document("nim")
EXPLAINER = Explainer(NIM, {"$ref": "#/components/schemas/CompletionRequest"})
PAIRS = Pairs(NIM, "create_completion")
# Large values make the search slow and say nothing that their own test below does not.
LARGEST = 5_000


def pairs() -> list[Any]:
    entries = [entry for entry in ledger(NIM) if entry.kind == "schema"]
    return [PAIRS.of(entry) for entry in entries]


def pool() -> dict[str, list[Any]]:
    """Field to values that are interesting for it, good and bad."""
    found: dict[str, list[Any]] = {}
    for pair in pairs():
        for body in (*pair.accept, *pair.reject):
            for name, value in body.items() if isinstance(body, dict) else ():
                if len(str(value)) < LARGEST:
                    found.setdefault(name, []).append(value)
    return found


POOL = pool()


def is_lax_integer(entry: Entry) -> bool:
    """The one known difference: 1.0 must pass, so `int` is lax in the models and takes true and "1" too."""
    schema = entry.steps[-1].schema
    return entry.keyword == "type" and "integer" in str(schema.get("type"))


def model_accepts(body: Any) -> bool:
    try:
        CompletionRequest.model_validate(body)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair.entry.id)
def test_pairs(pair: Any) -> None:
    for body in pair.accept:
        assert CompletionRequest.model_validate(body).model_dump(mode="json", by_alias=True) == body
    refused = [body for body in pair.reject if not model_accepts(body)]
    taken = [body for body in pair.reject if model_accepts(body)]
    assert all(is_lax_integer(pair.entry) for _ in taken), taken
    assert refused or pair.entry.fault is None


@settings(max_examples=1000, deadline=None)
@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in POOL.items()}))
def test_any_mix_of_fields(fields: dict[str, Any]) -> None:
    body = PAIRS.minimal | fields
    valid = EXPLAINER.is_valid(body)
    assert (EXPLAINER.first(body) is None) == valid
    assert model_accepts(body) or not valid
    if valid:
        assert CompletionRequest.model_validate(body).model_dump(mode="json", by_alias=True) == body


def test_a_whole_number_written_as_a_decimal_is_an_integer() -> None:
    assert CompletionRequest.model_validate(PAIRS.minimal | {"n": 2.0}).n == 2
