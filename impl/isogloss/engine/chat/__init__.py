"""How families of models write calls of functions and thoughts into their text."""

from isogloss.engine.chat.answer import AnswerParser
from isogloss.engine.chat.calls import (
    CallArguments,
    CallStarted,
    Content,
    Function,
    FunctionCall,
    Piece,
    Reasoning,
    joined,
)
from isogloss.engine.chat.guiding.guide import after_reasoning, call_guide
from isogloss.engine.chat.reasoning import ReasoningFormat
from isogloss.engine.chat.registry import (
    REASONING_FORMATS,
    TOOL_FORMATS,
    detect_reasoning_format,
    detect_tool_format,
)
from isogloss.engine.chat.tools.base import ToolFormat, ToolParser

__all__ = [
    "REASONING_FORMATS",
    "TOOL_FORMATS",
    "AnswerParser",
    "CallArguments",
    "CallStarted",
    "Content",
    "Function",
    "FunctionCall",
    "Piece",
    "Reasoning",
    "ReasoningFormat",
    "ToolFormat",
    "ToolParser",
    "after_reasoning",
    "call_guide",
    "detect_reasoning_format",
    "detect_tool_format",
    "joined",
]
