"""What comes out under each kind of guide."""

from __future__ import annotations

import base64
import json
import re
import unicodedata

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from isogloss.engine.api import Guide, Sampling
from isogloss.engine.scripted import HINT

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SEEDS = range(3)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def prefer(*tokens: str) -> dict[str, str]:
    return {HINT: base64.b64encode(json.dumps({"prefer_tokens": tokens}).encode()).decode()}


@pytest.mark.parametrize(
    ("guide", "pattern"),
    [
        (Guide("regex", "[a-c]{2,4}-[0-9]+x"), "[a-c]{2,4}-[0-9]+x"),
        (Guide("regex", "^ab$"), "ab"),
        (Guide("choice", choices=("yes", "no", "não 😀")), "yes|no|não 😀"),
        (Guide("grammar", 'start: "a" b\nb: "c" | "d" b'), "ad*c"),
        (Guide("grammar", 'root ::= "a" [x-z]+ tail\ntail ::= "!" | "?"'), "a[x-z]+[!?]"),
    ],
)
async def test_text_follows_its_guide(texts, guide: Guide, pattern: str) -> None:
    for seed in SEEDS:
        for text, reason in await texts(guide, sampling=Sampling(seed=seed), n=2):
            assert reason == "stop"
            assert re.fullmatch(pattern, text)


@pytest.mark.parametrize("whitespace", [None, "", "[ ]?"])
async def test_a_schema_is_followed(texts, whitespace: str | None) -> None:
    guide = Guide("json_schema", json.dumps(PERSON), whitespace=whitespace)
    for seed in SEEDS:
        [(text, reason)] = await texts(guide, sampling=Sampling(seed=seed))
        assert reason == "stop"
        assert jsonschema_rs.is_valid(PERSON, json.loads(text))
        if whitespace == "":
            assert not re.search(r'[{,:]\s|\s[}:"]$', text)


@pytest.mark.parametrize(
    "idle",
    [
        {"type": "array", "uniqueItems": False, "unevaluatedItems": True},
        {"type": "object", "propertyNames": {}, "dependentRequired": {}, "unevaluatedProperties": {}},
        {"type": "object", "properties": {"uniqueItems": {"type": "array", "uniqueItems": False}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "propertyNames": {"type": "string"}}}},
        {"type": "object", "properties": {"format": {"type": "integer", "format": "int32"}}, "required": ["format"]},
        {"type": "string", "format": "password"},
    ],
)
async def test_what_asks_for_nothing_is_no_obstacle(texts, idle: dict[str, object]) -> None:
    [(text, _)] = await texts(Guide("json_schema", json.dumps(idle)), sampling=Sampling(seed=1))
    assert jsonschema_rs.is_valid(idle, json.loads(text))


async def test_a_name_is_no_keyword(texts) -> None:
    forbidden = {"type": "object", "properties": {"uniqueItems": False}, "minProperties": 1}
    for seed in SEEDS:
        [(text, _)] = await texts(Guide("json_schema", json.dumps(forbidden)), sampling=Sampling(seed=seed))
        assert "uniqueItems" not in json.loads(text)


async def test_any_object(texts) -> None:
    found = [(await texts(Guide("json_object"), sampling=Sampling(seed=seed)))[0] for seed in range(8)]
    complete = [text for text, reason in found if reason == "stop"]
    assert complete
    assert all(isinstance(json.loads(text), dict) for text in complete)


@pytest.mark.parametrize("blanks", [(" ", "\n", "\t"), (" " * 7,), ("\n",)])
async def test_json_never_runs_off_in_blanks(texts, blanks: tuple[str, ...]) -> None:
    """Not between its parts, and not inside a text either."""
    guide = Guide("json_schema", json.dumps({"type": "object", "required": ["x"]}))
    [(text, _)] = await texts(guide, hints=prefer(*blanks), max_tokens=200)
    assert max(map(len, re.findall(r"\s+", text))) <= 64


async def test_a_schema_may_demand_more_blanks(texts) -> None:
    guide = Guide("json_schema", json.dumps({"const": " " * 100}))
    assert await texts(guide) == [(json.dumps(" " * 100), "stop")]


async def test_the_pattern_for_blanks_is_honoured(texts) -> None:
    guide = Guide("json_schema", json.dumps(PERSON), whitespace="[ ]?")
    [(text, _)] = await texts(guide, hints=prefer(" ", "\n"), max_tokens=100)
    outside = re.sub(r'"[^"]*"?', "text", text)
    assert " " in outside
    assert not re.search(r"\s\s|\n", outside)


values = st.recursive(
    st.sampled_from(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"type": "integer", "minimum": -3, "maximum": 40},
            {"type": "string", "maxLength": 4},
            {"type": "string", "pattern": "^[ab]+c$", "maxLength": 9},
            {"enum": [1, "two", None]},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda items, least: {"type": "array", "items": items, "minItems": least, "maxItems": 3},
            inner,
            st.integers(0, 2),
        ),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda known: {
                "type": "object",
                "properties": known,
                "required": sorted(known)[:1],
                "additionalProperties": False,
            }
        ),
        st.tuples(inner, inner).map(lambda pair: {"anyOf": list(pair)}),
    ),
    max_leaves=5,
)


@FEW
@given(schema=values, seed=st.integers(0, 99))
async def test_any_schema_is_followed(texts, schema, seed: int) -> None:
    guide = Guide("json_schema", json.dumps(schema))
    [(text, reason)] = await texts(guide, sampling=Sampling(seed=seed, temperature=0.7), max_tokens=600)
    if reason == "stop":
        assert jsonschema_rs.is_valid(schema, json.loads(text))


patterns = st.recursive(
    st.sampled_from(["a", "[b-d]", "é", r"\d", r"\.", "😀"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        inner.map(lambda one: f"({one}){{1,3}}"),
        inner.map(lambda one: f"({one})?"),
    ),
    max_leaves=6,
)


@FEW
@given(pattern=patterns, seed=st.integers(0, 99))
async def test_any_pattern_is_followed(texts, pattern: str, seed: int) -> None:
    [(text, reason)] = await texts(Guide("regex", pattern), sampling=Sampling(seed=seed))
    assert reason == "stop"
    # Python may be behind the library's version of Unicode, and know fewer digits.
    assume(not any(unicodedata.category(character) == "Cn" for character in text))
    assert re.fullmatch(pattern, text)


@FEW
@given(
    choices=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, max_size=4)
)
async def test_any_choice_is_one_of_them(texts, choices: list[str]) -> None:
    [(text, reason)] = await texts(Guide("choice", choices=tuple(choices)))
    assert (text in choices, reason) == (True, "stop")
