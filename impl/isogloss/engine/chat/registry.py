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

_TAKES_TOOLS = re.compile(r"\btools\b")
_SHOWN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("deepseek", re.compile("tool▁calls▁begin.*```json", re.DOTALL)),
    ("deepseek_v31", re.compile("tool▁calls▁begin")),
    ("qwen3_coder", re.compile("<function=")),
    ("qwen3", re.compile("<tool_call>.*<think>|<think>.*<tool_call>", re.DOTALL)),
    ("hermes", re.compile("<tool_call>")),
    ("llama3", re.compile(r"<\|python_tag\|>|\bipython\b")),
)
"""The first that a template shows is its format. ChatGLM3's template shows nothing of how it calls."""

_DEEPSEEK = "<\uff5cAssistant\uff5c>"


def detect_tool_format(template: str) -> str | None:
    """The format that a chat template's text shows; None if it takes no `tools` or shows none that is known."""
    if not _TAKES_TOOLS.search(template):
        return None
    return next((name for name, sign in _SHOWN if sign.search(template)), None)


def detect_reasoning_format(template: str) -> str | None:
    """The format of thoughts that a chat template's text shows, or None."""
    if "</think>" not in template and "enable_thinking" not in template:
        return None
    return "deepseek_r1" if _DEEPSEEK in template and "thinking" not in template else "qwen3"
