"""Which field becomes which guide, and what its refusal is called."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from isogloss.dialects.guides import guided_fields, response_format
from isogloss.dialects.nim import _guided
from isogloss.engine.api import Guide, GuideError, GuideFlaw
from isogloss_api import document
from isogloss_spec.faults import FaultTable

NONE = {"guided_json": None, "guided_regex": None, "guided_choice": None, "guided_grammar": None}
FREE = {**NONE, "guided_whitespace_pattern": None, "response_format": None, "nvext": None}
SCHEMA = {"type": "object", "properties": {"b": {"const": None}, "a": {}}}


@pytest.mark.parametrize(
    ("fields", "guide"),
    [
        ({"guided_json": SCHEMA}, Guide("json_schema", json.dumps(SCHEMA))),
        ({"guided_json": "{}"}, Guide("json_schema", "{}")),
        ({"guided_regex": "a+"}, Guide("regex", "a+")),
        ({"guided_choice": ["a", "b"]}, Guide("choice", choices=("a", "b"))),
        ({"guided_grammar": "start: x"}, Guide("grammar", "start: x")),
    ],
)
def test_vllms_fields(fields, guide: Guide) -> None:
    found = guided_fields({**NONE, **fields}, "d.fault", below="nvext.")
    assert (found.guide, found.param) == (guide, f"nvext.{next(iter(fields))}")
    assert guided_fields(NONE, "d.fault") is None


def test_response_format() -> None:
    schema = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    assert response_format(schema, "f").guide == Guide("json_schema", json.dumps(SCHEMA))
    assert response_format({"type": "json_object"}, "f").guide == Guide("json_object")
    assert response_format({"type": "text"}, "f") is response_format(None, "f") is None


def test_nim_takes_a_guide_from_each_place() -> None:
    assert _guided(FREE) is None
    whitespace = _guided({**FREE, "guided_json": {}, "guided_whitespace_pattern": ""})
    assert whitespace.guide == Guide("json_schema", "{}", whitespace="")
    assert _guided({**FREE, "response_format": {"type": "json_object"}}).param == "response_format"
    assert _guided({**FREE, "nvext": {**NONE, "guided_regex": "a"}}).param == "nvext.guided_regex"


@pytest.mark.parametrize("dialect", ["nim", "mindie"])
@pytest.mark.parametrize("flaw", get_args(GuideFlaw))
def test_a_document_has_a_text_for_each_flaw(dialect: str, flaw: GuideFlaw) -> None:
    guided = guided_fields({**NONE, "guided_json": {}}, f"{dialect}.guide_invalid")
    found = document(dialect)
    answer = FaultTable(found).render(guided.refusal(GuideError(flaw)), request_id="r")
    assert found["x-faults"][guided.fault]["reasons"][flaw] in json.dumps(answer.body)


def test_a_refusal_names_the_field_and_a_reason_of_ours() -> None:
    guided = guided_fields({**NONE, "guided_json": {}}, "nim.guide_invalid")
    fault = guided.refusal(GuideError("unsatisfiable"))
    assert (fault.name, fault.param, fault.values) == (
        "nim.guide_invalid",
        "guided_json",
        {"reason": "unsatisfiable"},
    )
    assert guided.refusal(GuideError("invalid", whitespace=True)).param == "guided_whitespace_pattern"
