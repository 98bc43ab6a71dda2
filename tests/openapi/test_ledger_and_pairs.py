"""The ledger is complete, and every entry has its pair."""

from __future__ import annotations

from typing import Any

import pytest
from isogloss_spec import Fault, Judge
from isogloss_spec.ledger import Entry, ledger
from isogloss_spec.pairs import Pairs


@pytest.fixture(scope="module")
def entries(nim: dict[str, Any]) -> list[Entry]:
    return ledger(nim)


def test_ids_are_unique(entries: list[Entry]) -> None:
    assert len({entry.id for entry in entries}) == len(entries)


def test_every_field_of_the_request_is_there(entries: list[Entry], nim: dict[str, Any]) -> None:
    fields = set(nim["components"]["schemas"]["CompletionRequest"]["properties"])
    assert fields == {entry.steps[0].name for entry in entries if entry.steps}


@pytest.mark.parametrize(
    ("entry_id", "fault", "status", "level"),
    [
        ("nim/completions/top_p/maximum", "out_of_range", 422, "core"),
        ("nim/completions/top_p/exclusiveMinimum", "out_of_range", 422, "extended"),
        ("nim/completions/body/additionalProperties", "unknown_field", 400, "extended"),
        ("nim/completions/model/required", "missing_field", 422, "core"),
        ("nim/completions/add_special_tokens/type", "wrong_type", 422, "core"),
        ("nim/completions/echo/not_streamed", "rule", 400, "core"),
        ("nim/completions/max_tokens/context", "context_overflow", 400, "extended"),
        ("nim/completions/fault/unsupported_media_type", "unsupported_media_type", 415, "core"),
        ("nim/completions/response_format.type/enum", "out_of_range", 422, "extended"),
    ],
)
def test_known_entries(entries: list[Entry], entry_id: str, fault: str, status: int, level: str) -> None:
    entry = next(entry for entry in entries if entry.id == entry_id)
    assert (entry.fault, entry.status, entry.level) == (fault, status, level)


def test_a_field_that_takes_null_has_an_entry_that_says_so(entries: list[Entry]) -> None:
    ids = {entry.id for entry in entries}
    assert "nim/completions/seed/nullable" in ids
    assert "nim/completions/add_special_tokens/nullable" not in ids


def test_every_entry_has_a_body_it_accepts_and_one_that_breaks_it_alone(
    nim: dict[str, Any], entries: list[Entry]
) -> None:
    judge = Judge(nim, "create_completion")
    pairs = Pairs(nim, "create_completion")
    for entry in entries:
        if entry.kind == "fault" or (entry.rule and entry.rule["stage"] == "prompt"):
            continue
        pair = pairs.of(entry)
        assert pair.accept
        assert pair.reject or entry.fault is None
        for body in pair.accept:
            judge.check_body(body)
        for body in pair.reject:
            with pytest.raises(Fault) as caught:
                judge.check_body(body)
            assert caught.value.name == entry.fault, entry.id
            assert caught.value.entry in (None, entry.id)


def test_a_type_entry_is_broken_by_every_other_type(nim: dict[str, Any], entries: list[Entry]) -> None:
    entry = next(entry for entry in entries if entry.id == "nim/completions/n/type")
    values = [body["n"] for body in Pairs(nim, "create_completion").of(entry).reject]
    assert values == ["a", True, 1.5, [], {}, "1"]
