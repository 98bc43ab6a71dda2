from __future__ import annotations

import base64
import json

import pytest
from isogloss.engine.api import EngineRefused
from isogloss.engine.chat import TOOL_FORMATS, FunctionCall
from isogloss.engine.scripted.script import HINT, Script, read_script


def read(value, tool_format: str | None = "hermes") -> Script:
    return read_script({HINT: base64.b64encode(json.dumps(value).encode()).decode()}, tool_format)


def test_no_header_is_the_empty_script():
    assert read_script({}) == read({}) == Script()


def test_all_members():
    assert read({"tokens": ["a", "é"], "end": "length", "fail_after": 2}) == Script(
        (b"a", "é".encode()), end="length", fail_after=2
    )
    assert read({"bytes_hex": ["f09F", ""], "delay_ms_each": 5}) == Script(
        (b"\xf0\x9f", b""), first_delay=0.005, delay=0.005
    )
    assert read({"prefer_tokens": [" "], "delay_ms_first": 20}) == Script((b" ",), endless=True, first_delay=0.02)


CALL = {"name": "f", "arguments": '{"a": 1}'}


def test_tool_calls_follow_the_text():
    script = read({"tokens": ["Hm. "], "tool_calls": [CALL, CALL], "chunk": 3})
    call = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    assert b"".join(script.tokens).decode() == f"Hm. {call}\n{call}"
    assert script.step == 3
    assert read({"tool_calls": [CALL], "one_delta": True}).step == len(read({"tool_calls": [CALL]}).tokens)


@pytest.mark.parametrize("family", sorted(TOOL_FORMATS))
def test_tool_calls_are_in_the_engines_format(family):
    tokens = read({"tool_calls": [CALL]}, family).tokens
    assert b"".join(tokens).decode() == TOOL_FORMATS[family].write([FunctionCall("f", '{"a": 1}')])
    assert len(tokens) > 5


def test_an_engine_without_a_format_writes_no_calls():
    with pytest.raises(EngineRefused):
        read({"tool_calls": [CALL]}, None)
    assert read({"tool_calls": []}, None).tokens == ()


def test_a_cut_tool_call_ends_with_length():
    script = read({"tool_calls": [CALL], "truncate_tokens": 6})
    assert (len(script.tokens), script.end) == (6, "length")
    assert read({"tool_calls": [CALL], "truncate_tokens": 600}).end == "stop"


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"token": []},
        {"tokens": "a"},
        {"tokens": [1]},
        {"bytes_hex": ["f"]},
        {"bytes_hex": ["f0 9f"]},
        {"prefer_tokens": []},
        {"tokens": [], "bytes_hex": []},
        {"tool_calls": [{"name": "f"}]},
        {"fail_after": -1},
        {"fail_after": True},
        {"delay_ms_each": "5"},
        {"delay_ms_first": float("nan")},
        {"end": "eos"},
        {"chunk": 0},
        {"one_delta": 1},
        {"truncate_tokens": 1.5},
    ],
)
def test_broken_scripts_are_refused(value):
    with pytest.raises(EngineRefused):
        read(value)


@pytest.mark.parametrize("header", ["", "x", "e30", "!!!!", "gICA", "W1tbW1s="])
def test_broken_headers_are_refused(header):
    with pytest.raises(EngineRefused):
        read_script({HINT: header})


def test_deeply_nested_json_is_refused():
    with pytest.raises(EngineRefused):
        read_script({HINT: base64.b64encode(b"[" * 100_000).decode()})
