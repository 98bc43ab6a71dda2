"""The formats by name, and by what a chat template shows of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from isogloss.engine.chat.reasoning import ReasoningFormat
from isogloss.engine.chat.tools.base import ToolFormat
from isogloss.engine.chat.tools.chatglm3 import ChatGlm3
from isogloss.engine.chat.tools.deepseek import DeepSeek, DeepSeekV31
from isogloss.engine.chat.tools.hermes import Hermes
from isogloss.engine.chat.tools.llama3 import Llama3
from isogloss.engine.chat.tools.qwen3 import Qwen3
from isogloss.engine.chat.tools.qwen3_coder import Qwen3Coder

TOOL_FORMATS: Mapping[str, ToolFormat] = {
    format.name: format for format in (Hermes(), Qwen3(), Qwen3Coder(), DeepSeek(), DeepSeekV31(), ChatGlm3(), Llama3())
}

REASONING_FORMATS: Mapping[str, ReasoningFormat] = {
    format.name: format
    for format in (
        ReasoningFormat("qwen3", "<think>", "</think>"),
        ReasoningFormat("deepseek_r1", "<think>", "</think>", implicit=True),
    )
}

_CALLS = re.compile(r"\btools\b|\btool_calls\b")
_CHATGLM3 = "[gMASK]sop<|"
_SHOWN: tuple[tuple[str | None, tuple[str, ...]], ...] = (
    ("deepseek", ("tool▁calls▁begin", "```json")),
    ("deepseek_v31", ("tool▁calls▁begin",)),
    ("qwen3_coder", ("<tool_call>", "<function=", "<parameter=")),
    # Forms that are not known here and have marks like those of known ones.
    (None, ("<tool_calls>",)),
    (None, ("<arg_key>",)),
    ("qwen3", ("<tool_call>", '"arguments', "<think>")),
    ("hermes", ("<tool_call>", '"arguments')),
    ("llama3", ("ipython", '"parameters')),
    ("llama3", ("<|python_tag|>", '"parameters')),
)
"""The first whose signs a template has, all of them, is its format."""

_DEEPSEEK = "<\uff5cAssistant\uff5c>"


def detect_tool_format(template: str) -> str | None:
    """The format that a chat template's text shows; None if it knows neither functions nor calls, or shows no format.

    ChatGLM3's template shows nothing of how it calls and is known by its first marks.
    """
    if _CHATGLM3 in template:
        return "chatglm3"
    if not _CALLS.search(template):
        return None
    return next((name for name, signs in _SHOWN if all(sign in template for sign in signs)), None)


def detect_reasoning_format(template: str) -> str | None:
    """The format of thoughts that a chat template's text shows, or None."""
    if "</think>" not in template and "enable_thinking" not in template:
        return None
    return "deepseek_r1" if _DEEPSEEK in template and "thinking" not in template else "qwen3"
