"""A model's own chat template, and what a client may hand it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from jinja2 import TemplateError, TemplateSyntaxError

from isogloss.engine.api import ChatTemplateError
from isogloss.engine.chat.tools.base import ToolFormat
from isogloss.engine.tool_turns import ToolTurns, calls_of, one_call_a_turn, role_of_results, with_names

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_NAME = re.compile(r"[A-Za-z]\w*")
_NOT_THE_CLIENTS = frozenset(
    "conversations messages raise_exception strftime_now namespace dict range lipsum cycler joiner self".split()
)
"""What templates are given by transformers and jinja, beside the parameters of `apply_chat_template`."""
_LONGEST_TEXT = 1024
_LARGEST_NUMBER = 2**31


class ChatTemplate:
    """The template that came with a tokenizer; transformers runs it in a sandbox.

    No template of a client's is ever applied: of a client's arguments, only names that occur in the model's template
    and mean nothing to transformers or jinja get through, and only values that can't make it work for long.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, tool_format: ToolFormat | None = None) -> None:
        """`tool_format` is how functions and calls are written if the template knows none."""
        self._tokenizer = tokenizer
        words = _words(tokenizer)
        self._names = _argument_names(tokenizer, words)
        self._turns: ToolTurns | None = None
        if tool_format is not None and "tools" not in words:
            role = role_of_results(lambda turns: self._apply(turns, (), {}), tool_format.result_role)
            self._turns = ToolTurns(tool_format, role)

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        arguments: Mapping[str, object],
        tools: Sequence[Mapping[str, object]] = (),
    ) -> str:
        """The prompt as text, never empty. Raises ChatTemplateError."""
        if not self._tokenizer.chat_template:
            raise ChatTemplateError("missing", "the model has no chat template")
        chosen = {name: _checked(value) for name, value in arguments.items() if name in self._names}
        try:
            text = self._rendered(messages, tools, chosen)
        except TemplateSyntaxError as error:
            raise ChatTemplateError("broken", "the chat template is not one") from error
        # Templates are programs of the models': one refuses messages in its own words, another breaks on them.
        except Exception as error:
            raise ChatTemplateError("refused", f"the chat template failed: {type(error).__name__}") from error
        if not text:
            raise ChatTemplateError("refused", "the chat template made an empty prompt")
        return text

    def _rendered(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]],
        arguments: dict[str, Any],
    ) -> str:
        if self._turns is not None:
            return self._apply([dict(turn) for turn in self._turns.of(messages, tools)], (), arguments)
        turns = with_names(messages)
        try:
            return self._apply([*map(_with_parsed_arguments, turns)], tools, arguments)
        except TypeError:
            # Some templates join the arguments of calls to their text and take no mapping.
            return self._apply(turns, tools, arguments)
        except TemplateError:
            # Some take no turn with several calls.
            if not any(len(calls_of(turn)) > 1 for turn in turns):
                raise
            return self._apply([*map(_with_parsed_arguments, one_call_a_turn(turns))], tools, arguments)

    def _apply(
        self, conversation: list[dict[str, Any]], tools: Sequence[Mapping[str, object]], arguments: dict[str, Any]
    ) -> str:
        rendered = self._tokenizer.apply_chat_template(
            conversation,
            tools=cast("Any", list(tools) or None),
            tokenize=False,
            add_generation_prompt=True,
            **arguments,
        )
        return cast("str", rendered)


def _words(tokenizer: PreTrainedTokenizerBase) -> frozenset[str]:
    """All that could be a name in the templates' texts."""
    template = tokenizer.chat_template
    texts = template.values() if isinstance(template, dict) else [template or ""]
    return frozenset(word for text in texts for word in _NAME.findall(text))


def _argument_names(tokenizer: PreTrainedTokenizerBase, words: frozenset[str]) -> frozenset[str]:
    special_tokens = {*tokenizer.SPECIAL_TOKENS_ATTRIBUTES, *tokenizer.special_tokens_map}
    return frozenset(words - _NOT_THE_CLIENTS - special_tokens - set(_parameters(tokenizer)))


def _parameters(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    return list(inspect.signature(tokenizer.apply_chat_template).parameters)


def _checked(value: object) -> object:
    match value:
        case None | bool():
            return value
        case int() | float() if abs(value) < _LARGEST_NUMBER:
            return value
        case str() if len(value) <= _LONGEST_TEXT:
            return value
    raise ChatTemplateError("argument", "arguments of the chat template must be truth values, numbers or short texts")


def _with_parsed_arguments(message: Mapping[str, object]) -> dict[str, Any]:
    """A message for templates, which write the arguments of calls themselves and so want them as a mapping."""
    calls = calls_of(message)
    if not calls:
        return dict(message)
    return {**message, "tool_calls": [{**call, "function": _parsed_function(call["function"])} for call in calls]}


def _parsed_function(function: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are no JSON object stay the text that they are."""
    try:
        parsed = json.loads(function["arguments"])
    except (ValueError, RecursionError):
        return dict(function)
    return {**function, "arguments": parsed} if isinstance(parsed, dict) else dict(function)
