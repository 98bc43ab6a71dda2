"""Laws of all families' parsers, and what each of them reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from isogloss.engine.chat import (
    TOOL_FORMATS,
    CallArguments,
    CallStarted,
    Content,
    Function,
    FunctionCall,
    Piece,
    joined,
)
from support.growth import grows_linearly

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "exact": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "object"},
    },
}
FUNCTIONS = [Function("get_weather", "Weather of a city.", PARAMETERS), Function("get"), Function("时间")]
FORMATS = sorted(TOOL_FORMATS)
PYTHON_OR_XML = ("chatglm3", "qwen3_coder")
ALL, ALL_END = "<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁calls▁end\uff5c>"
BEGIN, END = "<\uff5ctool▁call▁begin\uff5c>", "<\uff5ctool▁call▁end\uff5c>"
BETWEEN = "<\uff5ctool▁sep\uff5c>"
QUICK = settings(max_examples=150, deadline=None)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "city": texts,
        "days": st.integers(),
        "exact": st.booleans(),
        "tags": st.lists(texts, max_size=3),
        "deep": st.dictionaries(texts, st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    },
)
calls = st.lists(st.tuples(st.sampled_from([function.name for function in FUNCTIONS]), arguments), max_size=3)


def fragments(name: str) -> list[str]:
    """Scraps of a family's texts, to make near misses of."""
    form = TOOL_FORMATS[name]
    call = form.write([FunctionCall("get_weather", '{"city": "O\\"s", "days": 1}')])
    return [
        *form.markers,
        call,
        form.write([FunctionCall("unknown", '{"a": 1}')]),
        *(call[:n] for n in range(0, len(call), 7)),
        *(call[n:] for n in range(0, len(call), 7)),
        *'<{}"\\`;,:()= \n',
        "tool_call(",
        "</parameter>",
        '{"name": "get"',
    ]


def parsed(name: str, parts: Sequence[str]) -> list[Piece]:
    parser = TOOL_FORMATS[name].parser(FUNCTIONS)
    pieces = [piece for part in parts for piece in parser.push(part)]
    return joined([*pieces, *parser.end()])


def calls_in(pieces: Sequence[Piece]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for piece in pieces:
        if isinstance(piece, CallStarted):
            assert piece.index == len(found)
            found.append((piece.name, ""))
        elif isinstance(piece, CallArguments):
            assert piece.index == len(found) - 1
            found[-1] = (found[-1][0], found[-1][1] + piece.text)
    return found


def content(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Content))


@pytest.mark.parametrize("name", FORMATS)
def test_chunks_make_no_difference(name: str) -> None:
    @QUICK
    @given(text=st.lists(st.sampled_from(fragments(name)) | texts, max_size=8).map("".join), data=st.data())
    def law(text: str, data: st.DataObject) -> None:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
        whole = parsed(name, [text])
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert parsed(name, parts) == whole
        assert parsed(name, list(text)) == whole
        if not any(isinstance(piece, CallStarted) for piece in whole):
            assert content(whole) == text

    law()


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_read(name: str) -> None:
    @QUICK
    @given(calls=calls, before=st.sampled_from(["", "I will look.\n"]))
    def law(calls: list[tuple[str, dict[str, object]]], before: str) -> None:
        if name == "llama3":  # calls stand at the start
            before = ""
        assume(name != "qwen3_coder" or "</parameter>" not in json.dumps(calls))  # it has no way to escape its tags
        text = TOOL_FORMATS[name].write([FunctionCall(n, json.dumps(a)) for n, a in calls])
        pieces = parsed(name, [before + text])
        assert content(pieces) == before
        found = calls_in(pieces)
        assert [n for n, _ in found] == [n for n, _ in calls]
        assert [json.loads(a) for _, a in found] == [known(n, a) for n, a in calls]
        if name not in PYTHON_OR_XML:
            assert [a for _, a in found] == [json.dumps(a) for _, a in calls]

    def known(function: str, told: dict[str, object]) -> dict[str, object]:
        if name != "qwen3_coder" or function == "get_weather":
            return told
        # Without a schema, a text that looks like another value is that value.
        return {key: untyped(value) for key, value in told.items()}

    def untyped(value: object) -> object:
        parser = TOOL_FORMATS[name].parser([Function("get")])
        [_, piece, *_] = [*parser.push(TOOL_FORMATS[name].write([FunctionCall("get", json.dumps({"v": value}))]))]
        assert isinstance(piece, CallArguments)
        return json.loads(piece.text)["v"]

    law()


@pytest.mark.parametrize("name", FORMATS)
@given(text=st.text(st.sampled_from("ab .,!?\n\t{}é"), max_size=40).filter(lambda text: not text.startswith("{")))
def test_text_without_markers_is_unchanged(name: str, text: str) -> None:
    assert content(parsed(name, list(text))) == text


@pytest.mark.parametrize("name", FORMATS)
def test_unknown_functions_are_text(name: str) -> None:
    text = TOOL_FORMATS[name].write([FunctionCall("unknown", '{"a": 1}')])
    assert parsed(name, [text]) == [Content(text)]


@pytest.mark.parametrize("name", FORMATS)
def test_a_cut_call_leaves_what_came(name: str) -> None:
    text = TOOL_FORMATS[name].write([FunctionCall("get_weather", '{"city": "Oslo", "days": 3}')])
    whole = calls_in(parsed(name, [text]))[0][1]
    for size in range(len(text)):
        pieces = parsed(name, [text[:size]])
        started = [piece for piece in pieces if isinstance(piece, CallStarted)]
        assert content(pieces) == ("" if started else text[:size])
        assert all(whole.startswith(told) for _, told in calls_in(pieces))


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_starts_before_it_ends(name: str) -> None:
    text = TOOL_FORMATS[name].write([FunctionCall("get_weather", '{"city": "Oslo", "days": 3}')])
    parser = TOOL_FORMATS[name].parser(FUNCTIONS)
    early = parser.push(text[: text.index("Oslo")])
    assert early[0] == CallStarted(0, "get_weather")


def hostile(name: str, size: int) -> list[str]:
    call = TOOL_FORMATS[name].write([FunctionCall("get_weather", '{"days": 3}')])
    begun = call[: call.index("3")]
    ends = ["<", "{", "[", " ", "\n", '"', "\\", "-", "1+", "(", "not ", "a", "'", "</", "lambda:", "{1:", "a.", "0"]
    return [
        *(end * (size // len(end)) for end in ends),
        *(begun + end * (size // len(end)) + call for end in ends),
        *(marker * (size // len(marker)) for marker in TOOL_FORMATS[name].markers),
        call * (size // len(call)),
        begun * (size // len(begun)),
    ]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("step", "size"), [(None, 200_000), (7, 40_000)])
def test_hostile_texts_cost_no_more_than_their_length(name: str, step: int | None, size: int) -> None:
    texts = {size: hostile(name, size) for size in (size // 10, size)}
    for number, text in enumerate(texts[size]):

        def work(size: int, number: int = number) -> None:
            text = texts[size][number]
            parsed(name, [text] if step is None else [text[i : i + step] for i in range(0, len(text), step)])

        assert grows_linearly(work, size // 10, size), text[:60]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("hermes", '<tool_call>{"arguments": {"a":1}, "name": "get"}</tool_call>', [("get", '{"a":1}')]),
        ("hermes", '<tool_call>\n{"name": "get"}\n</tool_call>', [("get", "{}")]),
        ("hermes", '<tool_call>{"name": "get", "arguments": {}}}\n</tool_call>', [("get", "{}")]),
        ("hermes", '<tool_call>{"name": "get", "arguments": {"a": 1, \n</tool_call>', [("get", '{"a": 1,')]),
        ("hermes", '<tool_call>{"name": "\\u65f6间", "arguments": {}}</tool_call>', [("时间", "{}")]),
        ("hermes", '<tool_call>{"na<tool_call>{"name": "get", "arguments": {}}</tool_call>', [("get", "{}")]),
        (
            "hermes",
            '<tool_call>{"name": "get", "arguments": {"a": "</tool_call>"}}',
            [("get", '{"a": "</tool_call>"}')],
        ),
        ("qwen3_coder", "<function=get><parameter=a>1</parameter></function>", [("get", '{"a": 1}')]),
        ("qwen3_coder", "<tool_call>\n<function=get>\n</function>\n</tool_call>", [("get", "{}")]),
        (
            "qwen3_coder",
            "<tool_call><function=get_weather><parameter=city>\n5\n</parameter><parameter=exact>\nTrue\n</parameter></function>",
            [("get_weather", '{"city": "5", "exact": true}')],
        ),
        ("llama3", '<|python_tag|>{"name": "get", "parameters": {"a": 1}}', [("get", '{"a": 1}')]),
        ("llama3", '{"type": "function", "name": "get", "arguments": {}}', [("get", "{}")]),
        (
            "chatglm3",
            "get\n ```python\ntool_call(a='it\\'s', b=[1, (2,)], c=None, d=x)\n```",
            [("get", '{"a": "it\'s", "b": [1, [2]], "c": null, "d": "x"}')],
        ),
        (
            "deepseek",
            f"{ALL}{BEGIN}get{BETWEEN}{{}}{END}",
            [("get", "{}")],
        ),
        # Fenced without a line end, and calls with nothing or a line end between them.
        (
            "deepseek",
            ALL
            + 2 * (BEGIN + f"function{BETWEEN}get\n```json\n{{}}```{END}")
            + f"\n{BEGIN}function{BETWEEN}get\n```json\n{{}}\n```{END}",
            3 * [("get", "{}")],
        ),
        (
            "deepseek_v31",
            f"{ALL}{BEGIN}get{BETWEEN}\n```json\n{{}}\n```{END}",
            [("get", "{}")],
        ),
        # The object in braces that are written twice, in a list, beside another one, as a text, as nothing.
        ("hermes", '<tool_call>\n{{"name": "get", "arguments": {"a": 1}}}\n</tool_call>', [("get", '{"a": 1}')]),
        (
            "hermes",
            '<tool_call>[{"name": "get", "arguments": {}}, {"name": "get", "arguments": {"a": 1}}]</tool_call>',
            [("get", "{}"), ("get", '{"a": 1}')],
        ),
        (
            "qwen3",
            '<tool_call>\n{"name": "get", "arguments": {}}\n{"name": "get", "arguments": {"a": 1}}\n</tool_call>',
            [("get", "{}"), ("get", '{"a": 1}')],
        ),
        ("hermes", '<tool_call>{"name": "get", "arguments": "{\\"a\\": 1}"}</tool_call>', [("get", '{"a": 1}')]),
        ("hermes", '<tool_call>{"name": "get", "arguments": "hm"}</tool_call>', [("get", '"hm"')]),
        ("hermes", '<tool_call>{"name": "get", "arguments": null}</tool_call>', [("get", "{}")]),
        ("hermes", '<tool_call>{"name": "get", "arguments": }</tool_call>', [("get", "{}")]),
        ("llama3", '{"name": "get", "parameters": "{\\"a\\": 1}"}', [("get", '{"a": 1}')]),
        ("llama3", '<|python_tag|>get(a="x")', [("get", '{"a": "x"}')]),
        ("llama3", '<|python_tag|>get.call(a="x", b=[1]) and', [("get", '{"a": "x", "b": [1]}')]),
        ("llama3", '<|python_tag|>other.call(a="x")', []),
        ("llama3", 'get.call(a="x")', []),
        # Tags that are left out, and brackets of tags.
        (
            "qwen3_coder",
            "<tool_call>\n<function=get_weather\n<parameter=city\nOslo\n</parameter>\n</function>\n</tool_call>",
            [("get_weather", '{"city": "Oslo"}')],
        ),
        (
            "qwen3_coder",
            "<function=get>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
            [("get", '{"a": 1}')],
        ),
        (
            "qwen3_coder",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n<parameter=days>\n3\n</function>\n</tool_call>",
            [("get_weather", '{"city": "Oslo", "days": 3}')],
        ),
        (
            "chatglm3",
            "Well.<|assistant|>get\n ```python\ntool_call(a=1)\n```<|assistant|>get\n ```python\ntool_call()\n```",
            [("get", '{"a": 1}'), ("get", "{}")],
        ),
    ],
)
def test_habits(name: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert calls_in(parsed(name, [text])) == expected
    assert calls_in(parsed(name, list(text))) == expected


@pytest.mark.parametrize(
    ("schema", "written", "read"),
    [
        ({"type": "string"}, "007", "007"),
        ({"type": ["string", "null"]}, "90210", "90210"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "true", "true"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
        ({"anyOf": [{"$ref": "#/$defs/unit"}, {"type": "null"}]}, "7", "7"),
        ({"enum": ["1", None]}, "1", "1"),
        ({"type": ["string", "integer"]}, "7", 7),
        ({"type": ["string", "number"]}, "7", 7),
        ({"type": ["string", "array"]}, "{'a': 1}", "{'a': 1}"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7", 7),
        ({"$ref": "#/$defs/loop"}, "7", 7),
        ({}, "7", 7),
    ],
)
def test_values_are_what_the_schema_takes(schema: dict[str, object], written: str, read: object) -> None:
    definitions = {"unit": {"type": "string", "enum": ["7", "8"]}, "loop": {"$ref": "#/$defs/loop"}}
    function = Function("f", None, {"type": "object", "properties": {"a": schema}, "$defs": definitions})
    parser = TOOL_FORMATS["qwen3_coder"].parser([function])
    text = f"<tool_call>\n<function=f>\n<parameter=a>\n{written}\n</parameter>\n</function>\n</tool_call>"
    [(_, arguments)] = calls_in([*parser.push(text), *parser.end()])
    assert json.loads(arguments) == {"a": read}


def test_calls_stand_as_their_models_write_them() -> None:
    two = [FunctionCall("get", '{"a": 1}'), FunctionCall("get", "{}")]
    assert TOOL_FORMATS["hermes"].write(two) == (
        '<tool_call>\n{"name": "get", "arguments": {"a": 1}}\n</tool_call>\n'
        '<tool_call>\n{"name": "get", "arguments": {}}\n</tool_call>'
    )
    assert TOOL_FORMATS["qwen3_coder"].write(two) == (
        "<tool_call>\n<function=get>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=get>\n</function>\n</tool_call>"
    )
    fenced = f'{BEGIN}function{BETWEEN}get\n```json\n{{"a": 1}}\n```{END}'
    empty = f"{BEGIN}function{BETWEEN}get\n```json\n{{}}\n```{END}"
    assert TOOL_FORMATS["deepseek"].write(two) == f"{ALL}{fenced}\n{empty}{ALL_END}"
    bare = f'{BEGIN}get{BETWEEN}{{"a": 1}}{END}{BEGIN}get{BETWEEN}{{}}{END}'
    assert TOOL_FORMATS["deepseek_v31"].write(two) == f"{ALL}{bare}{ALL_END}"
    assert TOOL_FORMATS["llama3"].write(two[:1]) == '{"name": "get", "parameters": {"a": 1}}'
    assert TOOL_FORMATS["chatglm3"].write(two[:1]) == "get\n ```python\ntool_call(a=1)\n```"


def test_blank_text_around_calls_is_dropped_and_other_text_stays() -> None:
    call = TOOL_FORMATS["hermes"].write([FunctionCall("get", "{}")])
    assert content(parsed("hermes", [f"\n\n{call}\n{call}\n"])) == ""
    assert content(parsed("hermes", [f" So: {call}\nDone."])) == " So: \nDone."


@pytest.mark.parametrize("name", FORMATS)
def test_instructions_show_functions_and_form(name: str) -> None:
    form = TOOL_FORMATS[name]
    told = form.instructions(FUNCTIONS)
    assert all(text in told for text in ("get_weather", "Weather of a city.", '"days"', "时间"))
    assert all(marker in told for marker in form.markers if form.trigger)
