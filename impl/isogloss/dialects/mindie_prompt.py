"""From MindIE's messages to a prompt, and to the figures that the rules of stage `prompt` read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from isogloss_api.mindie import requests
from isogloss_api.runtime import Context, Measured
from isogloss_spec.faults import Fault
from pydantic import BaseModel

from isogloss.dialects.fields import stop_texts
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.mindie_messages import Conversation, nesting, read
from isogloss.dialects.prompts import at_least
from isogloss.engine.api import ChatTemplateError, Engine, ModelCard

_FLAWED = {"missing": None, "broken": None, "refused": "messages", "argument": "chat_template_kwargs"}
"""The field at fault, by what is wrong with the template."""
_LONG = 4096
"""Characters from which on applying a template would keep other requests waiting."""
_MANY = 256
"""Messages and parts from which on reading them would."""
_MESSAGE_CHARS = 64
"""What a message costs beside its text, in characters."""


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation, tokenized; empty if its rules refuse it anyway."""

    tokens: list[int]


class PromptReader:
    """Reads requests for one engine."""

    def __init__(self, engine: Engine, config: MindIEConfig) -> None:
        self._engine = engine
        self._config = config

    async def measure(self, body: requests.ChatRequest) -> Measured[ChatPrompt]:
        """Apply the model's template and tokenize. Raises Fault `mindie.template_…`."""
        conversation = await _conversation(body)
        tokens, length = await self._prompt(conversation, _arguments(body))
        context = self._context(body, conversation, length)
        if isinstance(body.tools, list) and body.tools:  # only then a rule asks, and unknown fields may be huge
            context["depth"] = await asyncio.to_thread(nesting, body)
        return Measured(context, ChatPrompt(tokens))

    async def _prompt(self, conversation: Conversation, arguments: Mapping[str, object]) -> tuple[list[int], int]:
        """The prompt and its length; for messages that the rules refuse, no prompt and their length in characters."""
        if conversation.flawed:
            return [], conversation.chars
        if conversation.chars > _LONG:
            count = await asyncio.to_thread(self._too_many, conversation)
            if count:
                return [], count
        tokens = await self._tokenized(conversation, arguments)
        if self._config.truncation:
            tokens = tokens[: self._config.served(self._engine.card).prompt]
        return tokens, len(tokens)

    def _too_many(self, conversation: Conversation) -> int:
        """Tokens that the texts have at least, if no prompt may have as many; else 0."""
        if self._config.truncation:
            return 0
        texts = (text for message in conversation.messages if isinstance(text := message.get("content"), str))
        return at_least(texts, self._engine.tokenizer, self._engine.card.context_length)

    async def _tokenized(self, conversation: Conversation, arguments: Mapping[str, object]) -> list[int]:
        messages, encode = conversation.messages, self._engine.tokenizer.encode_chat
        try:
            if conversation.chars + _MESSAGE_CHARS * len(messages) < _LONG:
                return encode(messages, arguments=arguments)
            return await asyncio.to_thread(encode, messages, arguments=arguments)
        except ChatTemplateError as error:
            raise Fault(f"mindie.template_{error.flaw}", param=_FLAWED[error.flaw]) from error

    def _context(self, body: requests.ChatRequest, conversation: Conversation, length: int) -> Context:
        card = self._engine.card
        return {
            "prompts": 1,
            "prompt_tokens_min": length,
            "prompt_tokens_max": length,
            "prompt_tokens_sum": length,
            "context_length": card.context_length,
            "vocab_size": card.vocab_size,
            "messages_chars": conversation.chars,
            "empty_messages": conversation.empty,
            "unreadable_parts": conversation.unreadable_parts,
            "tool_messages_without_id": conversation.tool_messages_without_id,
            "stop_chars": sum(map(len, _stops(body))),
            "server": _server(self._config, card),
        }


async def _conversation(body: requests.ChatRequest) -> Conversation:
    parts = sum(len(message.content) for message in body.messages if isinstance(message.content, list))
    if len(body.messages) + parts < _MANY:
        return read(body.messages)
    return await asyncio.to_thread(read, body.messages)


def _server(config: MindIEConfig, card: ModelCard) -> dict[str, int]:
    """Limits, and the modes of a MindIE server that this one never runs in."""
    limits = config.served(card)
    return {
        "maxInputTokenLen": limits.max_input_token_len,
        "maxSeqLen": limits.max_seq_len,
        "maxIterTimes": limits.max_iter_times,
        "topK": -1 if card.top_k is None else card.top_k,
        "deepseek": 0,
        "disaggregated": 0,
        "plugins": 0,
    }


def _arguments(body: requests.ChatRequest) -> dict[str, object]:
    given = body.chat_template_kwargs
    return {name: getattr(given, name) for name in given.model_fields_set} if isinstance(given, BaseModel) else {}


def _stops(body: requests.ChatRequest) -> tuple[str, ...]:
    return stop_texts(body.stop) if isinstance(body.stop, str | list) else ()
