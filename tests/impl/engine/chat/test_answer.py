"""Thoughts, and which formats a template shows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isogloss.engine.chat import (
    REASONING_FORMATS,
    TOOL_FORMATS,
    AnswerParser,
    CallArguments,
    CallStarted,
    Content,
    Function,
    Piece,
    Reasoning,
    detect_reasoning_format,
    detect_tool_format,
    joined,
)

QWEN3 = REASONING_FORMATS["qwen3"]
DEEPSEEK_R1 = REASONING_FORMATS["deepseek_r1"]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "<think>"}}\n</tool_call>'
SCRAPS = ["<think>", "</think>", "<thi", "</", "\n", "\n\n", " ", "hm", "ok", CALL, CALL[:20]]


def parsed(*parts: str, inside: bool = False, tools: bool = True) -> list[Piece]:
    parser = AnswerParser(QWEN3, TOOL_FORMATS["qwen3"].parser([Function("f")]) if tools else None, inside=inside)
    pieces = [piece for part in parts for piece in parser.push(part)]
    return joined([*pieces, *parser.end()])


@pytest.mark.parametrize(
    ("text", "inside", "expected"),
    [
        ("<think>\nhm\n</think>\n\nok", False, [Reasoning("hm"), Content("ok")]),
        ("\n<think>\nhm", False, [Reasoning("hm")]),
        ("hm\n\nmore\n</think>\n\n  ok\n", True, [Reasoning("hm\n\nmore"), Content("  ok\n")]),
        ("<think>\nhm</think>ok", True, [Reasoning("hm"), Content("ok")]),
        ("hm, never closed", True, [Reasoning("hm, never closed")]),
        ("\nhm\n\n", True, [Reasoning("hm\n\n")]),
        ("<think>\n\n</think>\n\nok", False, [Content("ok")]),
        ("\n ok <think> no </think>", False, [Content("\n ok <think> no </think>")]),
        ("<thi", False, [Content("<thi")]),
        ("hm </thi", True, [Reasoning("hm </thi")]),
        (f"<think>{CALL}</think>ok", False, [Reasoning(CALL), Content("ok")]),
        # A thought that is never closed and ends with calls.
        (
            f"hm {CALL} so:\n{CALL}\n{CALL}\n",
            True,
            [
                Reasoning(f"hm {CALL} so:\n{CALL}\n{CALL}\n"),
                CallStarted(0, "f"),
                CallArguments(0, '{"a": "<think>"}'),
                CallStarted(1, "f"),
                CallArguments(1, '{"a": "<think>"}'),
            ],
        ),
        (f"<think>{CALL} or not", False, [Reasoning(f"{CALL} or not")]),
        (f"<think>{CALL[:40]}", False, [Reasoning(CALL[:40])]),
        (
            f"<think>hm</think>\n\n{CALL}",
            False,
            [Reasoning("hm"), CallStarted(0, "f"), CallArguments(0, '{"a": "<think>"}')],
        ),
    ],
)
def test_parts_of_an_answer(text: str, inside: bool, expected: list[Piece]) -> None:
    assert parsed(text, inside=inside) == expected
    assert parsed(*text, inside=inside) == expected


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.sampled_from(SCRAPS) | st.text(max_size=3), max_size=8), inside=st.booleans())
def test_chunks_make_no_difference(parts: list[str], inside: bool) -> None:
    text = "".join(parts)
    assert parsed(*parts, inside=inside) == parsed(text, inside=inside) == parsed(*text, inside=inside)


@given(text=st.text(st.sampled_from("ab <>/think\n")))
def test_without_formats_the_text_stays(text: str) -> None:
    parser = AnswerParser(None, None)
    assert joined([*parser.push(text), *parser.end()]) == joined([Content(text)])


def test_whether_it_thinks() -> None:
    parser = AnswerParser(QWEN3, None)
    told = [parser.thinking]
    for part in ("<thi", "nk>", "hm", "</think", ">", "ok"):
        parser.push(part)
        told.append(parser.thinking)
    assert told == [False, False, True, True, True, False, False]
    assert AnswerParser(QWEN3, None, inside=True).thinking
    assert not AnswerParser(None, None, inside=True).thinking


@pytest.mark.parametrize(
    ("tail", "qwen3", "deepseek_r1"),
    [
        ("<|im_start|>assistant\n", False, True),
        ("<|im_start|>assistant\n<think>\n", True, True),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", False, False),
        ("</think><|im_end|>\n<|im_start|>assistant\n", False, True),
    ],
)
def test_where_a_prompt_leaves_off(tail: str, qwen3: bool, deepseek_r1: bool) -> None:
    assert QWEN3.begins_inside(tail) == qwen3
    assert DEEPSEEK_R1.begins_inside(tail) == deepseek_r1


@pytest.mark.parametrize(
    ("template", "tools", "reasoning"),
    [
        ("{{ messages }}", None, None),
        ("{{ messages }} <tool_call>", None, None),
        ('{% if tools %}<tool_call>{"name": n, "arguments": a}{% endif %}', "hermes", None),
        ('{% if tools %}{{ "<tool_call>{\\"name\\": n, \\"arguments\\": a}" }}{% endif %}', "hermes", None),
        (
            '{% if tools %}<tool_call>"arguments"{% endif %}{% if enable_thinking %}<think>\n\n</think>{% endif %}',
            "qwen3",
            "qwen3",
        ),
        ("{% if tools %}<tool_call><function=x><parameter=y>{% endif %}", "qwen3_coder", None),
        ("{% if tools %}<tool_call><function=x><parameter=y>{% endif %}<think></think>", "qwen3_coder", "qwen3"),
        ("{{ tools }}<\uff5ctool▁calls▁begin\uff5c>```json", "deepseek", None),
        # DeepSeek's own templates take no functions and yet write calls.
        ("{{ m.tool_calls }}<\uff5ctool▁calls▁begin\uff5c>```json", "deepseek", None),
        ("{{ m.tool_calls }}<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁sep\uff5c>", "deepseek_v31", None),
        ("{{ tools }}<\uff5ctool▁calls▁begin\uff5c>{% if thinking %}</think>", "deepseek_v31", "qwen3"),
        ("<\uff5cAssistant\uff5c><think>\n{{ content.split('</think>') }}", None, "deepseek_r1"),
        ("{% if tools %}Environment: ipython {{ '\"parameters\": ' }}{% endif %}", "llama3", None),
        ("{% if tools %}ipython{% endif %}", None, None),
        (
            "{% for m in messages %}{% if loop.first %}[gMASK]sop<|{{ m.role }}|>{% endif %}{% endfor %}",
            "chatglm3",
            None,
        ),
        ("[gMASK]<sop><|{{ m.role }}|>", None, None),
        # Forms of others, with the same marks or similar ones.
        ("{% if tools %}<tool_call>{{ name }}<arg_key>{{ key }}</arg_key>{% endif %}", None, None),
        ('{% if tools %}<tool_call></tool_call> <tool_calls>[{"name": n, "arguments": a}]{% endif %}', None, None),
        ("{% if tools %}<function={{ name }}>{{ arguments }}</function> ipython{% endif %}", None, None),
        ("{% if tools %}<x:tool_call><function=f><parameter=p>{% endif %}", None, None),
        ("{% if tools %}{{ tools }}{% endif %}", None, None),
    ],
)
def test_formats_that_templates_show(template: str, tools: str | None, reasoning: str | None) -> None:
    assert detect_tool_format(template) == tools
    assert detect_reasoning_format(template) == reasoning
