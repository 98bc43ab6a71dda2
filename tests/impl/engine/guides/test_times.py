"""Times in JSON: the library takes a second 60 anywhere, a schema nearly nowhere."""

from __future__ import annotations

import json

import pytest
from isogloss.engine.api import Guide
from isogloss.engine.guides.grammar import grammar_of
from isogloss.engine.guides.schema import without_leap_seconds
from isogloss.engine.guides.trial import compiled


def allows(tokens, schema: object, text: str) -> bool:
    guide = compiled(tokens.tokenizer, grammar_of(Guide("json_schema", json.dumps(schema))))
    assert not guide.is_error()
    return guide.consume_tokens([*json.dumps(text).encode()]) and guide.is_accepting()


@pytest.mark.parametrize(
    ("form", "text", "allowed"),
    [
        ("date-time", "2001-02-03T20:30:59Z", True),
        ("date-time", "2001-02-03t20:30:59.25+05:30", True),
        ("date-time", "2001-02-03T20:30:60Z", False),
        ("time", "20:30:09-08:00", True),
        ("time", "20:30:60-08:00", False),
    ],
)
@pytest.mark.parametrize("more", [{}, {"type": "string"}, {"type": ["string", "null"], "allOf": [{"minLength": 1}]}])
def test_no_second_60(tokens, more: dict[str, object], form: str, text: str, allowed: bool) -> None:
    assert allows(tokens, {"format": form, **more}, text) is allowed


def test_values_that_look_like_schemas_stay() -> None:
    value = {"format": "time"}
    schema = {
        "enum": [value],
        "const": value,
        "properties": {"format": {"type": "string"}},
        "items": [{"format": "uri"}],
    }
    assert without_leap_seconds(schema) == schema
