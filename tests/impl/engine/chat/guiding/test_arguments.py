"""Arguments that follow their schema, in the forms that write each by itself and in all others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isogloss.engine.api import Delta, GenerationRequest, Guide, GuideError, Sampling, Stopping
from isogloss.engine.chat import TOOL_FORMATS, CallArguments, CallStarted, Function, FunctionCall, call_guide
from isogloss.engine.chat.guiding.untagged import untagged
from isogloss.engine.guides.compiler import CompilerLimits, GuideCompiler
from isogloss.engine.scripted import ScriptedEngine
from isogloss.engine.scripted.vocabulary import guide_vocabulary

FORMATS = sorted(TOOL_FORMATS)
ONE_BY_ONE = ("chatglm3", "qwen3_coder")
TEXT = {"type": "string"}
NULL = {"type": "null"}
INTEGER = {"type": "integer"}
QUICK = settings(max_examples=40, deadline=None)
SCRAPS = [
    "</parameter>",
    "\n<parameter=",
    "\n</function>",
    "</tool_call>",
    "<",
    "/",
    "p",
    "\n",
    ">",
    '"',
    "é",
    "1",
    "\\",
]


def of(schema: object, *, required: bool = True, **more: object) -> dict[str, Any]:
    """The parameters of a function with one argument."""
    return {"type": "object", "properties": {"s": schema}, "required": ["s"] if required else [], **more}


def guide(name: str, parameters: dict[str, Any]) -> Guide:
    function = Function("f", None, parameters, strict=True)
    made = call_guide(TOOL_FORMATS[name], [function], at_least=1, at_most=1)
    assert made is not None
    return made


def call(name: str, text: str, key: str = "s") -> str:
    """With one argument, written as it is: of ChatGLM3 as JSON."""
    if name == "chatglm3":
        return f"f\n ```python\ntool_call({key}={text})\n```"
    return f"<tool_call>\n<function=f>\n<parameter={key}>\n{text}\n</parameter>\n</function>\n</tool_call>"


def read(name: str, parameters: dict[str, Any], text: str) -> str:
    """The arguments of the only call in an answer."""
    parser = TOOL_FORMATS[name].parser([Function("f", None, parameters)])
    pieces = [*parser.push(text), *parser.end()]
    assert sum(isinstance(piece, CallStarted) for piece in pieces) == 1
    return "".join(piece.text for piece in pieces if isinstance(piece, CallArguments))


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": "^[0-9]{2}$"}, "12", "1"),
        ({"pattern": "[0-9]{2}"}, "a12b", "a1b2"),
        ({"pattern": "^a|b$"}, "xb", "xa"),
        ({"minLength": 2}, "né", "é"),
        ({"maxLength": 2}, "né", "née"),
        ({"minLength": 2, "maxLength": 3.0, "pattern": "^a"}, "abc", "ba"),
        ({"minLength": 1}, "\n", ""),
        ({"maxLength": 100_000}, "a</b> <parameter", "a</parameter>b"),
        ({"format": "date"}, "2024-02-29", "2023-02-29"),
        ({"format": "email", "maxLength": 5}, "a@b.c", "aa@b.c"),
        ({"format": "int32"}, "any", "</parameter>"),
        ({"const": "x y"}, "x y", "x"),
        ({"enum": ["a", "bc", 7]}, "a", "7"),
        ({"enum": ["a", "bc"], "minLength": 2}, "bc", "a"),
        ({"enum": ["a", "bc"], "const": "a"}, "a", "bc"),
        ({"minimum": 3, "description": "d", "default": ""}, '"quoted"', "\n<parameter=x"),
    ],
)
def test_a_text_without_quotes_follows_its_schema(takes, schema: dict[str, Any], good: str, bad: str) -> None:
    parameters = of({**TEXT, **schema})
    made = guide("qwen3_coder", parameters)
    assert takes(made, call("qwen3_coder", good))
    assert not takes(made, call("qwen3_coder", bad))
    assert json.loads(read("qwen3_coder", parameters, call("qwen3_coder", good))) == {"s": good}


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{**TEXT, "pattern": "^[0-9]{2}$"}, NULL]},
        {"anyOf": [TEXT, NULL], "pattern": "^[0-9]{2}$"},
        {"type": ["null", "string"], "pattern": "^[0-9]{2}$"},
        {"$ref": "#/$defs/two"},
        {"type": "string", "allOf": [{"pattern": "^[0-9]{2}$"}]},
    ],
)
@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_text_that_a_schema_limits_elsewhere_is_json(takes, name: str, schema: dict[str, Any]) -> None:
    parameters = of(schema, **{"$defs": {"two": {**TEXT, "pattern": "^[0-9]{2}$"}}})
    made = guide(name, parameters)
    assert takes(made, call(name, '"12"'))
    assert not takes(made, call(name, '"1"'))
    assert not takes(made, call(name, "1"))
    assert takes(made, call(name, "null")) == ("null" in json.dumps(schema))
    assert json.loads(read(name, parameters, call(name, '"12"'))) == {"s": "12"}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({**TEXT, "pattern": "^[0-9]{2}$"}, '"12"', '"1"'),
        ({**INTEGER, "minimum": 3, "maximum": 5}, "4", "6"),
        ({"type": "number", "multipleOf": 0.5, "minimum": 0}, "1.5", "1.2"),
        ({"type": "array", "items": {**TEXT, "maxLength": 1}, "minItems": 2}, '["a","b"]', '["a"]'),
        (of({**TEXT, "format": "date"}), '{"s":"2024-02-29"}', '{"s":"x"}'),
    ],
)
@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_value_of_json_follows_its_schema(takes, name: str, schema: dict[str, Any], good: str, bad: str) -> None:
    if name == "qwen3_coder" and schema["type"] == "string":
        good, bad = good.strip('"'), bad.strip('"')
    made = guide(name, of(schema))
    assert takes(made, call(name, good))
    assert not takes(made, call(name, bad))


@pytest.mark.parametrize(
    ("schema", "flaw"),
    [
        ({"pattern": "(?=a)b"}, "unsupported"),
        ({"format": "iri"}, "unsupported"),
        ({"pattern": "a("}, "invalid"),
        ({"pattern": "[b-a]"}, "invalid"),
        ({"pattern": 7}, "invalid"),
        ({"format": 7}, "invalid"),
        ({"minLength": -1}, "invalid"),
        ({"maxLength": True}, "invalid"),
        ({"minLength": 0.5}, "invalid"),
        ({"minLength": 3, "maxLength": 2}, "unsatisfiable"),
        ({"pattern": "^a$", "minLength": 2}, "unsatisfiable"),
        ({"enum": ["a"], "minLength": 2}, "unsatisfiable"),
        ({"enum": [1]}, "unsatisfiable"),
        ({"enum": ["a"], "const": "b"}, "unsatisfiable"),
        ({"pattern": "</parameter>"}, "unsatisfiable"),
        ({"minLength": 100_000}, "too_complex"),
    ],
)
def test_what_of_a_text_cannot_be_followed(takes, schema: dict[str, Any], flaw: str) -> None:
    with pytest.raises(GuideError) as caught:
        takes(guide("qwen3_coder", of({**TEXT, **schema})), "")
    assert caught.value.flaw == flaw


@pytest.mark.parametrize(
    "more",
    [
        {"minProperties": 2},
        {"maxProperties": 0},
        {"dependentRequired": {"s": ["t"]}},
        {"dependentSchemas": {"s": {"required": ["t"]}}},
        {"dependencies": {"s": ["t"]}},
        {"patternProperties": {"^s": {"maxLength": 2}}},
        {"propertyNames": {"maxLength": 3}},
        {"allOf": [{"required": ["s"]}]},
        {"anyOf": [{"required": ["s"]}]},
        {"oneOf": [{"required": ["s"]}]},
        {"not": {"required": ["t"]}},
        {"if": {"required": ["s"]}, "then": {"minProperties": 2}},
        {"enum": [{"s": "a"}]},
        {"const": {"s": "a"}},
        {"$ref": "#/$defs/other"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"required": []}}},
    ],
)
@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_what_a_schema_says_of_its_arguments_together_is_refused(name: str, more: dict[str, Any]) -> None:
    with pytest.raises(GuideError, match="unsupported"):
        guide(name, of(TEXT, **more))


@pytest.mark.parametrize("reference", ["#", "#/properties/s", "#s", "http://169.254.169.254/x", 7])
@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_reference_means_what_it_meant_in_the_whole(name: str, reference: object) -> None:
    with pytest.raises(GuideError, match="unsupported"):
        guide(name, of({"type": "array", "items": {"$ref": reference}}))


@pytest.mark.parametrize(
    "more",
    [
        {"minProperties": 1, "maxProperties": 1},
        {"additionalProperties": True},
        {"additionalProperties": False},
        {"additionalProperties": INTEGER},
        {"unevaluatedProperties": False},
        {"patternProperties": {}},
        {"dependentRequired": {}},
        {"propertyNames": {"type": "string"}},
        {"title": "T", "description": "d", "$schema": "http://json-schema.org/draft-07/schema#", "default": {}},
        {"type": ["object", "null"], "strict": True, "then": False},
    ],
)
@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_what_asks_for_nothing_is_let_through(takes, name: str, more: dict[str, Any]) -> None:
    assert takes(guide(name, of(INTEGER, **more)), call(name, "1"))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_arguments_without_names(takes, name: str) -> None:
    numbers = guide(name, {"type": "object", "additionalProperties": INTEGER})
    assert takes(numbers, call(name, "1", "any"))
    assert not takes(numbers, call(name, "x", "any"))
    named = {"type": "object", "required": ["z"], "additionalProperties": {**TEXT, "enum": ["1"]}}
    text = '"1"' if name == "chatglm3" else "1"
    assert takes(guide(name, named), call(name, text, "z"))
    assert not takes(guide(name, named), call(name, text, "y"))
    if name == "qwen3_coder":
        assert read(name, named, call(name, text, "z")) == '{"z": "1"}'
    referred = {"$ref": "#/$defs/a", "$defs": {"a": of({**TEXT, "maxLength": 1})}, "title": "T"}
    assert takes(guide(name, referred), call(name, text))
    assert not takes(guide(name, referred), call(name, text.replace("1", "12")))
    assert takes(guide(name, of(False, required=False)), written_without(name))
    with pytest.raises(GuideError, match="unsatisfiable"):
        guide(name, of(False))


def written_without(name: str) -> str:
    return TOOL_FORMATS[name].write([FunctionCall("f", "{}")])


@QUICK
@given(st.lists(st.sampled_from(SCRAPS), max_size=6).map("".join), st.sampled_from(["", "minLength"]))
def test_a_text_that_is_let_through_is_read_back(takes, text: str, limit: str) -> None:
    parameters = of({**TEXT, **({limit: 1} if limit else {})})
    answer = call("qwen3_coder", text)
    told = read("qwen3_coder", parameters, answer)
    kept = told == json.dumps({"s": text}, ensure_ascii=False)
    assert takes(guide("qwen3_coder", parameters), answer) == (kept and (bool(text) or not limit))


def test_tags_are_kept_out_at_their_places_only(takes) -> None:
    made = Guide("grammar", f"start: UNTAGGED\n{untagged(['</ab>'], ['<a='])}")
    assert takes(made, "<a= </a </ab <</ab \n<</a\n</ab")
    for text in ("x</ab>", "<</ab>", "</a</ab>", "\n<a=", "\n</ab>", "<a\n<a=", "\n\n<a=x"):
        assert not takes(made, text)


@pytest.mark.parametrize("value", ['{"a": "x</parameter>y"}', '["\\"</parameter>"]', "1e400", "9" * 5000, "[0.10]"])
@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_json_is_read_as_it_stands(takes, name: str, value: str) -> None:
    parameters = of({"type": ["object", "array", "number"]})
    assert takes(guide(name, parameters), call(name, value))
    assert read(name, parameters, call(name, value)) == f'{{"s": {value}}}'


def test_a_broken_text_of_json_ends_with_its_line() -> None:
    answer = call("qwen3_coder", '{"a": "b}') + call("qwen3_coder", "1")
    parser = TOOL_FORMATS["qwen3_coder"].parser([Function("f", None, of(INTEGER))])
    pieces = [*parser.push(answer), *parser.end()]
    assert sum(isinstance(piece, CallStarted) for piece in pieces) == 2


EVERYDAY = {
    "type": "object",
    "title": "search",
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string", "description": "What to look for.", "minLength": 1, "examples": ["a"]},
        "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 50, "format": "int32"},
        "exact": {"type": "boolean", "default": False},
        "since": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "default": None},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Note"},
        "sort": {"type": "string", "enum": ["asc", "desc"], "default": "asc"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "place": {"$ref": "#/$defs/Place"},
        "more": {"type": "object", "additionalProperties": True},
        "score": {"type": "number", "exclusiveMinimum": 0},
        "token": {"type": "string", "format": "password"},
    },
    "required": ["query", "since", "sort", "tags", "place"],
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


class Writer:
    """The scripted engine, for tests that are not asynchronous."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._engine = ScriptedEngine()
        self._runner.run(self._engine.start())
        # A busy machine must not make a schema look complex.
        self._engine._guides = GuideCompiler(guide_vocabulary(), CompilerLimits(seconds=60, waiting_seconds=60))

    def write(self, guide: Guide) -> list[str]:
        """Two texts; none for one that does not end."""
        return self._runner.run(self._written(guide))

    async def _written(self, guide: Guide) -> list[str]:
        request = GenerationRequest("r", [72], Stopping(300), Sampling(seed=1), n=2, guide=guide)
        texts, ended = ["", ""], set()
        async for event in self._engine.generate(request):
            if isinstance(event, Delta):
                texts[event.choice] += event.text
                ended |= {event.choice} if event.finish and event.finish.reason == "stop" else set()
        return [texts[choice] for choice in sorted(ended)]

    def close(self) -> None:
        self._runner.run(self._engine.stop())
        self._runner.close()


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.close()


def check(writer: Writer, name: str, parameters: dict[str, Any]) -> int:
    """How many calls the engine has written, all of them valid."""
    validator = jsonschema_rs.Draft202012Validator(parameters, validate_formats=True)
    texts = writer.write(guide(name, parameters))
    for text in texts:
        validator.validate(json.loads(read(name, parameters, text)))
    return len(texts)


@pytest.mark.parametrize("name", FORMATS)
def test_everyday_tools_are_called(writer: Writer, name: str) -> None:
    assert check(writer, name, EVERYDAY)


def _strings() -> st.SearchStrategy[dict[str, Any]]:
    limits: dict[str, st.SearchStrategy[Any]] = {
        "minLength": st.integers(0, 4),
        "maxLength": st.integers(3, 9),
        "pattern": st.sampled_from(["^[0-9]{2}$", "[a-c]", "^a|b$", r"^\w+$", "^[^<]*$"]),
        "format": st.sampled_from(["date", "uuid", "ipv4", "time", "color"]),
        "enum": st.lists(st.sampled_from(["a", "12", "null", "b c", "true", '"q"']), min_size=1, unique=True),
    }
    return st.one_of(
        *(st.fixed_dictionaries({"type": st.just("string"), key: value}) for key, value in limits.items()),
        st.fixed_dictionaries({"type": st.just("string")}, optional=limits),
    )


NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"]), "minimum": st.integers(-9, 5), "maximum": st.integers(0, 12)}
)
LEAVES = st.one_of(_strings(), NUMBERS, st.just({"type": "boolean"}))
VALUES = st.one_of(
    LEAVES,
    LEAVES.map(lambda leaf: {"anyOf": [leaf, NULL]}),
    LEAVES.map(lambda leaf: {"type": "array", "items": leaf, "minItems": 1, "maxItems": 2}),
    LEAVES.map(of),
)
PARAMETERS = st.dictionaries(st.sampled_from("abc"), st.tuples(VALUES, st.booleans()), max_size=3).map(
    lambda known: {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in known.items()},
        "required": [name for name, (_, required) in known.items() if required],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize("name", FORMATS)
def test_calls_are_valid(writer: Writer, name: str) -> None:
    written = []

    @QUICK
    @given(PARAMETERS)
    def run(parameters: dict[str, Any]) -> None:
        try:
            written.append(check(writer, name, parameters))
        except GuideError as error:
            assert error.flaw == "unsatisfiable"

    run()
    assert sum(written) > 20
