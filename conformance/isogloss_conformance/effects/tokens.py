"""Effects on which tokens a model is given, which end its text, and which are told and shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isogloss_conformance.effects.answers import TOKEN_PROMPT
from isogloss_conformance.effects.caller import Caller
from isogloss_conformance.effects.effect import Effect, rising, unequal, unprovable

Json = Any
COMMON = list(range(4096))
"""Tokens of which one comes soon in most vocabularies: bytes, marks, parts of common words."""
LONG = 64
SUFFIXES = ("\n    return total\n", " and they lived happily ever after.")
TALK = [
    {"role": "user", "content": "Good morning."},
    {"role": "assistant", "content": "Good morning to you."},
    {"role": "user", "content": "Say something."},
]


def _token_ids(call: Caller) -> str | None:
    """The log probabilities of the same answer name the same tokens."""
    shown: dict[str, Json] = {"logprobs": 0, "return_tokens_as_token_ids": True}
    asked: dict[str, Json] = {"prompt": TOKEN_PROMPT, "max_tokens": 3, "ignore_eos": True, **shown}
    choice, other = (call(**asked, return_token_ids=wanted).choices[0] for wanted in (True, False))
    made = [f"token_id:{token}" for token in choice.get("token_ids") or ()]
    return (
        unequal("prompt_token_ids", choice.get("prompt_token_ids"), TOKEN_PROMPT)
        or unequal("the number of token_ids", len(made), 3)
        or unequal("token_ids", made, (choice.get("logprobs") or {}).get("tokens"))
        or unequal("token_ids where nobody asked", other.get("token_ids"), None)
    )


def _special_tokens(call: Caller) -> str | None:
    """Texts that go on behind their end, long and many: an end token is likely among them. Raises NoReply if not."""
    asked: dict[str, Json] = {"n": 4, "temperature": 1, "seed": 1, "max_tokens": LONG, "ignore_eos": True}
    hidden, shown = (call(**asked, skip_special_tokens=skip).texts for skip in (True, False))
    if hidden == shown and not call.scripted:
        raise unprovable("no special token came")
    if hidden != call(**asked, skip_special_tokens=True).texts:
        raise unprovable("the same seed gives other texts")
    lengths = [sum(map(len, texts)) for texts in (hidden, shown)]
    return None if lengths[0] < lengths[1] else f"without and with special tokens texts have {lengths} characters"


def _common_tokens(call: Caller) -> str | None:
    """Among so many stop tokens one comes before long."""
    endings = [call(max_tokens=LONG, ignore_eos=True, stop_token_ids=ids).finish_reason for ids in ([], COMMON)]
    return unequal("the finish reasons without and with them", endings, ["length", "stop"])


def _messages(call: Caller) -> str | None:
    sizes = [call(max_tokens=1, messages=TALK[first:]).prompt_tokens for first in (2, 0)]
    return rising(sizes, "with one message and with three the prompt has")


def _system(call: Caller) -> str | None:
    """Two texts, since some templates put in one of their own where there is none."""
    orders = [[{"role": "system", "content": text}, TALK[0]] for text in ("Be brief.", "Be brief. " * 8)]
    sizes = [call(max_tokens=1, messages=talk).prompt_tokens for talk in orders]
    return rising(sizes, "with a short system message and with a long one the prompt has")


def _text_parts(call: Caller) -> str | None:
    part = {"type": "text", "text": "Good morning."}
    talks = [[{"role": "user", "content": [part] * count}] for count in (1, 2, 4)]
    return rising([call(max_tokens=1, messages=talk).prompt_tokens for talk in talks], "with 1, 2 and 4 texts it has")


def _suffix(call: Caller) -> str | None:
    """Log probabilities tell what follows where the model's words do not."""
    seen = [call(max_tokens=1, logprobs=5, suffix=suffix).choices[0].get("logprobs") for suffix in SUFFIXES]
    return "two suffixes give the same log probabilities" if seen[0] == seen[1] else None


def _token_effects() -> Iterator[Effect]:
    told = ("return_token_ids", "prompt", "ignore_eos", "return_tokens_as_token_ids")
    yield Effect("return_token_ids", "Tokens of prompt and completion are told.", told, _token_ids)
    shown = ("skip_special_tokens", "ignore_eos", "n", "seed")
    yield Effect("skip_special_tokens", "Without it special tokens are shown.", shown, _special_tokens)
    ending = ("stop_token_ids", "ignore_eos", "messages")
    yield Effect("stop_tokens", "The first stop token ends the answer.", ending, _common_tokens)
    yield Effect("messages", "Each message lengthens the prompt.", ("messages",), _messages)
    yield Effect("system", "A system message is part of the prompt.", ("messages",), _system)
    yield Effect("text_parts", "All texts of a message are part of the prompt.", ("messages",), _text_parts)
    yield Effect("suffix", "What follows changes log probabilities.", ("suffix", "logprobs", "prompt"), _suffix)


TOKEN_EFFECTS = tuple(_token_effects())
