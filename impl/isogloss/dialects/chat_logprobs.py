"""Log probabilities in the form of chat completions: one entry per token.

Tokens are named as in completions: by the text that they added, so that the names join to the text. `bytes` are those
of the name, so a part of a character has none and the last part has all of the character's.
"""

from __future__ import annotations

from typing_extensions import TypedDict

from isogloss.dialects.due_tokens import DueToken
from isogloss.dialects.logprobs import finite
from isogloss.engine.api import TokenLogprob


class ChatTopLogprob(TypedDict, closed=True):
    """One alternative."""

    token: str
    logprob: float
    bytes: list[int]


class ChatTokenLogprob(TypedDict, closed=True):
    """One token with its alternatives."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[ChatTopLogprob]


def chat_logprob(token: DueToken, alternatives: int) -> ChatTokenLogprob:
    """The entry of a token; as many of the most likely tokens as asked for, whether it is one of them or not."""
    chosen = token.score.chosen
    top = [
        _candidate(other, token.text if other.id == chosen.id else other.text)
        for other in token.score.top[:alternatives]
    ]
    return {**_candidate(chosen, token.text), "top_logprobs": top}


def _candidate(token: TokenLogprob, name: str) -> ChatTopLogprob:
    return {"token": name, "logprob": finite(token.logprob), "bytes": list(name.encode())}
