"""What rules of stage `prompt` may read as `ctx`: one closed list."""

from __future__ import annotations

from typing import TypedDict


class Context(TypedDict, total=False):
    """Figures about a request that only the server can know. A handler fills in what its rules read."""

    prompts: int
    """Number of prompts."""
    prompt_tokens_min: int
    """Tokens of the shortest prompt."""
    prompt_tokens_max: int
    """Tokens of the longest prompt."""
    prompt_tokens_sum: int
    """Tokens of all prompts together."""
    max_token_id: int
    """The largest token id that the request gives; -1 if it gives none."""
    context_length: int
    """Tokens of prompt and completion together that the model takes."""
    vocab_size: int
    """Token ids run from 0 to this minus 1."""
    layers: int
    """Decoder layers of the model."""
    hidden_size: int
    """Width of the residual stream."""
    depth: int
    """Depth of nesting of the body."""
    messages_chars: int
    """Characters of all messages together."""
    empty_messages: int
    """Messages without content that must have some."""
    tool_messages_without_id: int
    """Messages of role `tool` that name no call."""
    unreadable_parts: int
    """Content parts that do not hold exactly the one thing that their type names."""
    stop_chars: int
    """Characters of all stop texts together."""
    media_parts: int
    """Pictures, films and sounds in the content that has most of them."""
    media_address_chars: int
    """Characters of the longest path or address of one."""
    server: dict[str, int]
    """Limits and modes of this server by name."""
