"""From MindIE's messages to a prompt, and to the figures that the rules of stage `prompt` read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from isogloss_api.mindie import requests
from isogloss_api.runtime import Context, Measured
from isogloss_spec.faults import Fault
from pydantic import BaseModel

from isogloss.dialects.fields import stop_texts
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.mindie_media import MediaReader
from isogloss.dialects.mindie_messages import Conversation, nesting, read
from isogloss.dialects.mindie_tools import OfferedTools, offered_tools, read_tools
from isogloss.dialects.prompts import at_least
from isogloss.engine.api import ChatTemplateError, Engine, ModelCard
from isogloss.engine.media import MediaInput

_FLAWED = {"missing": None, "broken": None, "refused": "messages", "argument": "chat_template_kwargs"}
"""The field at fault, by what is wrong with the template."""
_LONG = 4096
"""Characters from which on applying a template would keep other requests waiting."""
_MANY = 256
"""Messages and parts from which on reading them would."""
_MESSAGE_CHARS = 64
"""What a message costs beside its text, in characters."""
_DENSEST = 4
"""How many times fewer tokens than JSON a template could write a function in."""


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation, tokenized; empty if its rules refuse it anyway."""

    tokens: list[int]
    media: MediaInput | None = None
    """Its media, in their places in the tokens."""


class PromptReader:
    """Reads requests for one engine."""

    def __init__(self, engine: Engine, config: MindIEConfig, media: MediaReader | None = None) -> None:
        """Without `media`, requests must have none."""
        self._engine = engine
        self._config = config
        self._media = media

    async def measure(self, body: requests.ChatRequest) -> Measured[ChatPrompt]:
        """Apply the model's template and tokenize. Raises Fault `mindie.template_…`."""
        conversation, tools = await _conversation(body), await _tools(body)
        tokens, length = await self._prompt(conversation, tools, _arguments(body))
        context = self._context(body, conversation, length)
        if isinstance(body.tools, list) and body.tools:  # only then a rule asks, and unknown fields may be huge
            context["depth"] = await asyncio.to_thread(nesting, body)
        rest = None
        if tokens and conversation.media and self._media is not None:
            rest = partial(self._with_media, self._media, conversation, tokens, context)
        return Measured(context, ChatPrompt(tokens), rest)

    async def _with_media(
        self, reader: MediaReader, conversation: Conversation, tokens: list[int], context: Context
    ) -> Measured[ChatPrompt]:
        """Get the media, now that the rules hold for all that could be known without them."""
        placed = await reader.place(tokens, conversation.media)
        found: Context = {**context, **_lengths(len(placed.tokens))}
        return Measured(found, ChatPrompt(placed.tokens, placed.input))

    async def _prompt(
        self, conversation: Conversation, tools: OfferedTools, arguments: Mapping[str, object]
    ) -> tuple[list[int], int]:
        """The prompt and its length; for messages that the rules refuse, no prompt and their length in characters."""
        if conversation.flawed:
            return [], conversation.chars
        least = len(conversation.media) if self._config.truncation else conversation.pieces
        if least >= self._engine.card.context_length:
            return [], least
        if conversation.chars + tools.chars > _LONG:
            count = await asyncio.to_thread(self._too_many, conversation, tools)
            if count:
                return [], count
        tokens = await self._tokenized(conversation, tools, arguments)
        if self._config.truncation and not conversation.media:  # half a medium is none
            tokens = tokens[: self._config.served(self._engine.card).prompt]
        return tokens, len(tokens)

    def _too_many(self, conversation: Conversation, tools: OfferedTools) -> int:
        """Tokens that the texts have at least, if no prompt may have as many; else 0."""
        if self._config.truncation:
            return 0
        tokenizer, limit = self._engine.tokenizer, self._engine.card.context_length
        count = at_least(conversation.texts(), tokenizer, limit)
        return count or at_least(tools.texts, tokenizer, _DENSEST * limit)

    async def _tokenized(
        self, conversation: Conversation, tools: OfferedTools, arguments: Mapping[str, object]
    ) -> list[int]:
        encode = partial(
            self._engine.tokenizer.encode_chat, conversation.messages, tools=tools.told, arguments=arguments
        )
        try:
            if conversation.chars + tools.chars + _MESSAGE_CHARS * len(conversation.messages) < _LONG:
                return encode()
            return await asyncio.to_thread(encode)
        except ChatTemplateError as error:
            raise Fault(f"mindie.template_{error.flaw}", param=_FLAWED[error.flaw]) from error

    def _context(self, body: requests.ChatRequest, conversation: Conversation, length: int) -> Context:
        card = self._engine.card
        return {
            **_lengths(length),
            "context_length": card.context_length,
            "vocab_size": card.vocab_size,
            "messages_chars": conversation.chars,
            "empty_messages": conversation.empty,
            "unreadable_parts": conversation.unreadable_parts,
            "tool_messages_without_id": conversation.tool_messages_without_id,
            "media_parts": conversation.most_media,
            "media_address_chars": max((part.address_chars for part in conversation.media), default=0),
            "stop_chars": sum(map(len, _stops(body))),
            "server": _server(self._config, card),
        }


def _lengths(tokens: int) -> Context:
    return {"prompts": 1, "prompt_tokens_min": tokens, "prompt_tokens_max": tokens, "prompt_tokens_sum": tokens}


async def _conversation(body: requests.ChatRequest) -> Conversation:
    parts = sum(len(message.content) for message in body.messages if isinstance(message.content, list))
    if len(body.messages) + parts < _MANY:
        return read(body.messages)
    return await asyncio.to_thread(read, body.messages)


async def _tools(body: requests.ChatRequest) -> OfferedTools:
    plan = read_tools(body)
    return await asyncio.to_thread(offered_tools, plan) if plan.functions else OfferedTools()


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
    if not isinstance(given, BaseModel):
        return {}
    named = {name: getattr(given, name) for name in given.model_fields_set}
    # Null is what clients write where nothing is set; a template could take it for `false`.
    return {name: value for name, value in named.items() if value is not None}


def _stops(body: requests.ChatRequest) -> tuple[str, ...]:
    return stop_texts(body.stop) if isinstance(body.stop, str | list) else ()
