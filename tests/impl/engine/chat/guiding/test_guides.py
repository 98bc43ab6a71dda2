"""Guides for answers with calls: what they let through."""

from __future__ import annotations

import json
from typing import Any

import pytest
from isogloss.engine.api import Guide, GuideError
from isogloss.engine.chat import (
    REASONING_FORMATS,
    TOOL_FORMATS,
    AnswerParser,
    CallArguments,
    CallStarted,
    Content,
    Function,
    FunctionCall,
    Reasoning,
    after_reasoning,
    call_guide,
    joined,
)
from isogloss.engine.guides.compiler import GuideCompiler
from isogloss.engine.guides.vocabulary import Vocabulary
from support.growth import calls_of
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["C", "F"]},
        "at": {"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}},
    },
    "required": ["city"],
    "$defs": {"x": {"type": "number"}},
}
STRICT = Function("get_weather", "Weather.", WEATHER, strict=True)
LOOSE = Function("log", None, {"type": "object", "properties": {"level": {"type": "integer"}}})
FORMATS = sorted(TOOL_FORMATS)
GOOD = FunctionCall("get_weather", '{"city": "Oslo", "days": 3, "unit": "C", "at": {"x": 1}}')
SHORT = FunctionCall("get_weather", '{"city": "Bern", "unit": "F"}')
THOUGHT = REASONING_FORMATS["qwen3"]


def written(name: str, *calls: FunctionCall) -> str:
    """As a model writes it; ChatGLM3's guide wants the texts of Python as JSON writes them."""
    text = TOOL_FORMATS[name].write(calls)
    return text.replace("'", '"') if name == "chatglm3" else text


def guide(name: str, *functions: Function, **options: Any) -> Guide:
    made = call_guide(TOOL_FORMATS[name], functions or (STRICT, LOOSE), **options)
    assert made is not None
    return made


@pytest.mark.parametrize("name", FORMATS)
def test_required_calls(takes, name: str) -> None:
    required = guide(name, at_least=1)
    assert takes(required, written(name, GOOD))
    assert takes(required, written(name, GOOD, SHORT, FunctionCall("log", '{"level": 1}')))
    assert not takes(required, "Sunny.")
    assert not takes(required, "")
    assert not takes(required, written(name, FunctionCall("other", "{}")))


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_is_not_pushed_into_a_further_call(takes, name: str) -> None:
    required = guide(name, at_least=1)
    assert required.yields
    blank_between = written(name, SHORT, SHORT).startswith(written(name, SHORT) + "\n")
    assert takes(required, written(name, SHORT) + "\n") == blank_between
    assert not guide(name, at_least=0).yields


@pytest.mark.parametrize("name", FORMATS)
def test_one_named_call(takes, name: str) -> None:
    named = guide(name, STRICT, at_least=1, at_most=1)
    assert takes(named, written(name, GOOD))
    assert not takes(named, written(name, GOOD, GOOD))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("arguments", ['{"city": "Oslo", "days": "x"}', '{"days": 3}', '{"city": "a", "unit": "K"}'])
def test_strict_arguments_follow_their_schema(takes, name: str, arguments: str) -> None:
    wrong = FunctionCall("get_weather", arguments)
    assert not takes(guide(name, at_least=1), written(name, wrong))
    assert not takes(guide(name, at_least=0), written(name, wrong))
    assert takes(guide(name, Function("get_weather"), at_least=1), written(name, wrong))


@pytest.mark.parametrize("name", FORMATS)
def test_strict_arguments_are_closed_and_others_are_free(takes, name: str) -> None:
    more = FunctionCall("get_weather", '{"city": "Oslo", "more": 1}')
    assert not takes(guide(name, at_least=1), written(name, more))
    free = FunctionCall("log", '{"level": "high", "more": [1]}')
    assert takes(guide(name, at_least=1), written(name, free))
    assert not takes(guide(name, at_least=1, strict_only=False), written(name, free))


@pytest.mark.parametrize("name", FORMATS)
def test_free_text_may_call(takes, name: str) -> None:
    free = guide(name, at_least=0)
    assert takes(free, "")
    assert takes(free, "Sunny, I think.")
    assert takes(free, written(name, GOOD))
    if TOOL_FORMATS[name].trigger:
        call = written(name, GOOD)
        assert takes(free, f"I will look.\n{call}\nand {call} done <")


@pytest.mark.parametrize("name", FORMATS)
def test_a_thought_may_come_first(takes, name: str) -> None:
    call = written(name, GOOD)
    assert takes(guide(name, at_least=1, reasoning=THOUGHT), call)
    assert takes(guide(name, at_least=1, reasoning=THOUGHT), f"<think>\n{{hm}}\n</think>\n\n{call}")
    inside = guide(name, at_least=1, reasoning=THOUGHT, inside=True)
    assert takes(inside, f"hm <\n</think>\n\n{call}")
    assert not takes(inside, call)
    assert not takes(inside, "hm </think>Sunny.")


def test_nothing_to_constrain() -> None:
    form = TOOL_FORMATS["hermes"]
    assert call_guide(form, [LOOSE], at_least=0) is None
    assert call_guide(form, [], at_least=1) is None
    assert call_guide(form, [LOOSE], at_least=0, strict_only=False) is not None


@pytest.mark.parametrize(
    ("inner", "good", "bad"),
    [
        (Guide("json_schema", '{"type": "object", "required": ["a"]}'), '{"a": 1}', "{}"),
        (Guide("json_object"), "{}", "[]"),
        (Guide("regex", "a+b"), "aab", "b"),
        (Guide("choice", choices=("yes", "</think>")), "yes", "no"),
        (Guide("grammar", 'start: "a" b\nb: "c"'), "ac", "a"),
        (Guide("grammar", 'root ::= "a" tail\ntail ::= "c"'), "ac", "a"),
    ],
)
def test_a_guide_after_a_thought(takes, inner: Guide, good: str, bad: str) -> None:
    begun, inside = (after_reasoning(inner, THOUGHT, is_inside) for is_inside in (False, True))
    assert takes(begun, good)
    assert takes(begun, f"<think>{bad}</think>\n\n{good}")
    assert takes(inside, f"{bad}</think>{good}")
    assert not takes(inside, f"{good}</think>{bad}")
    assert not takes(begun, bad)


@pytest.mark.parametrize(
    ("parameters", "flaw"),
    [
        ({"type": "nonsense"}, "invalid"),
        ({"properties": {"a": {"x-guidance": {"lenient": True}}}}, "unsupported"),
        ({"properties": {"a": {"$ref": "http://169.254.169.254/x"}}}, "unsupported"),
        ({"$schema": "http://169.254.169.254/x"}, "unsupported"),
        ({"properties": {"a": {"pattern": "a\\", "type": ["string", "null"]}}}, "invalid"),
        ({"properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}, "required": ["a"]}, "unsatisfiable"),
        ({"properties": 7}, "invalid"),
    ],
)
@pytest.mark.parametrize("name", ["hermes", "llama3", "deepseek"])
def test_schemas_are_checked_as_if_they_stood_alone(takes, name: str, parameters: dict[str, Any], flaw: str) -> None:
    with pytest.raises(GuideError) as caught:
        takes(guide(name, Function("f", None, parameters, strict=True), at_least=1), "")
    assert caught.value.flaw == flaw


@pytest.mark.parametrize(
    ("parameters", "flaw"),
    [
        ({"type": "array"}, "unsatisfiable"),
        ({"type": ["string", "null"]}, "unsatisfiable"),
        ({"properties": {"a": {}}, "required": ["b"]}, "unsatisfiable"),
        ({"required": [["a"]]}, "invalid"),
    ],
)
@pytest.mark.parametrize("name", FORMATS)
def test_arguments_that_cannot_be(takes, name: str, parameters: dict[str, Any], flaw: str) -> None:
    with pytest.raises(GuideError) as caught:
        takes(guide(name, Function("f", None, parameters, strict=True), at_least=1), "")
    assert caught.value.flaw == flaw


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_that_nests_deeply_is_too_complex(name: str) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"items": deep}
    with pytest.raises(GuideError, match="too_complex"):
        guide(name, Function("f", None, deep, strict=True), at_least=1)


def test_names_and_options_cannot_break_out_of_their_text(takes) -> None:
    odd = 'a"b\\ @marker0 @until0 @part0 时'
    function = Function(odd, None, {"properties": {"x": {"enum": [odd]}}, "required": ["x"]}, strict=True)
    call = FunctionCall(odd, json.dumps({"x": odd}, ensure_ascii=False))
    for name in ("hermes", "llama3", "qwen3_coder", "deepseek_v31"):
        assert takes(guide(name, function, at_least=1), written(name, call))


@pytest.mark.parametrize(
    ("name", "property", "schema"),
    [
        ("qwen3_coder", "a>b", {}),
        ("qwen3_coder", "a" * 257, {}),
        ("qwen3_coder", "a", {"enum": ["b</parameter>c"]}),
        ("chatglm3", "user-id", {}),
        ("chatglm3", "a=b", {}),
        ("chatglm3", "a" * 257, {}),
    ],
)
def test_what_a_form_cannot_write_is_refused(name: str, property: str, schema: dict[str, Any]) -> None:
    function = Function("f", None, {"properties": {property: schema}, "required": [property]}, strict=True)
    with pytest.raises(GuideError, match="unsupported"):
        guide(name, function, at_least=1)
    assert guide("hermes", function, at_least=1)


def test_an_optional_text_is_written_like_a_text(takes) -> None:
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    picked = {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}
    function = Function("f", None, {"properties": {"x": optional, "y": picked}, "required": ["x", "y"]}, strict=True)
    required = guide("qwen3_coder", function, at_least=1)
    assert takes(required, written("qwen3_coder", FunctionCall("f", '{"x": "Oslo", "y": null}')))
    assert takes(required, written("qwen3_coder", FunctionCall("f", '{"x": null, "y": null}')))
    quoted = written("qwen3_coder", FunctionCall("f", '{"x": "Oslo", "y": "?"}')).replace("?", '"a"')
    assert takes(required, quoted)
    assert not takes(required, quoted.replace('"a"', '"b"'))
    parser = TOOL_FORMATS["qwen3_coder"].parser([function])
    told = "".join(piece.text for piece in [*parser.push(quoted), *parser.end()] if isinstance(piece, CallArguments))
    assert json.loads(told) == {"x": "Oslo", "y": "a"}


@pytest.mark.parametrize("name", FORMATS)
def test_arguments_are_an_object(takes, name: str) -> None:
    function = Function("f", None, {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}}, strict=True)
    assert takes(guide(name, function, at_least=1), written(name, FunctionCall("f", '{"a": 1}')))
    if name not in ("qwen3_coder", "chatglm3"):
        assert not takes(guide(name, function, at_least=1), written(name, FunctionCall("f", "null")))


@pytest.mark.parametrize("name", ["qwen3_coder", "chatglm3"])
def test_definitions_that_each_argument_carries_along_have_a_bound(name: str) -> None:
    parameters = {
        "properties": {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(2000)},
        "$defs": {f"d{i}": {"type": "integer"} for i in range(2000)},
    }

    def work() -> None:
        with pytest.raises(GuideError, match="too_complex"):
            guide(name, Function("f", None, parameters, strict=True), at_least=1)

    # Each of the 2,000 arguments would carry 2,000 definitions along.
    assert calls_of(work) < 1_000_000


@pytest.mark.parametrize(
    "start", ["", " ", "\u3000", "\x1c", "<|python_tag|>", "Look: <|python_tag|>", "<think>hm</think>\n"]
)
def test_no_call_of_llama3_hides_in_free_text(takes, start: str) -> None:
    text = start + written("llama3", FunctionCall("get_weather", '{"days": "x"}'))
    parser = AnswerParser(THOUGHT, TOOL_FORMATS["llama3"].parser([STRICT]))
    assert any(isinstance(piece, CallStarted) for piece in [*parser.push(text), *parser.end()])
    assert not takes(guide("llama3", STRICT, at_least=0, reasoning=THOUGHT), text)
    if "<think>" not in start:
        assert not takes(guide("llama3", STRICT, at_least=0), text)
        assert not takes(guide("llama3", STRICT, at_least=0, reasoning=THOUGHT, inside=True), f"hm</think>\n{text}")


async def test_markers_may_be_special_tokens() -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    library = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(["<|end|>", "<tool_call>", "</tool_call>", "</think>"])
    end = library.token_to_id("<|end|>")
    compiler = GuideCompiler(Vocabulary(library.get_vocab_size(), (end,), library.to_str()))
    try:
        required = await compiler.ready(guide("hermes", at_least=1, reasoning=THOUGHT, inside=True))
        free = await compiler.ready(guide("hermes", at_least=0))
    finally:
        compiler.close()
    call = library.encode(written("hermes", GOOD)).ids
    assert len(call) < len(written("hermes", GOOD))
    thought = library.encode("hm </think>\n").ids
    assert required.matcher().permits([*thought, *call])
    assert not required.matcher().permits(call)
    assert free.matcher().permits([*library.encode("Look: ").ids, *call])
    assert not free.matcher().permits(library.encode("<tool_call>x").ids)


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_guide_lets_through_is_read_back(takes, name: str) -> None:
    text = f"<think>hm</think>\n\n{written(name, GOOD)}"
    assert takes(guide(name, at_least=1, reasoning=THOUGHT), text)
    parser = AnswerParser(THOUGHT, TOOL_FORMATS[name].parser([STRICT]))
    pieces = joined([*parser.push(text), *parser.end()])
    assert Reasoning("hm") in pieces
    assert not [piece for piece in pieces if isinstance(piece, Content)]
    told = "".join(piece.text for piece in pieces if isinstance(piece, CallArguments))
    assert json.loads(told) == json.loads(GOOD.arguments)
