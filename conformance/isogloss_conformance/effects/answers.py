"""Effects on what an answer says beside its text: counts, reasons, one choice for each prompt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from isogloss_conformance.effects.caller import Caller, Reply
from isogloss_conformance.effects.effect import Effect, unequal

Json = Any
TOKEN_PROMPT = [65, 66, 67]
"""Three tokens of any vocabulary."""
SHORT = {"tokens": ["a", "b"]}
"""A script that ends by itself after two tokens."""
LEAST = 10
TOKEN_LISTS = [[65, 66, 67], [70, 71]]
DAY = 86_400
"""Seconds."""


def _sum(call: Caller) -> str | None:
    usage = call(max_tokens=3).body.get("usage") or {}
    parts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    wrong = unequal("total_tokens", usage.get("total_tokens"), sum(part or 0 for part in parts))
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return wrong or (f"{cached} of {parts[0]} tokens were cached" if cached > (parts[0] or 0) else None)


def _prompt_tokens(call: Caller) -> str | None:
    return unequal("prompt_tokens", call(max_tokens=1, prompt=TOKEN_PROMPT).prompt_tokens, len(TOKEN_PROMPT))


def _completion_tokens(call: Caller) -> str | None:
    """Tokens of all choices together."""
    reply = call(max_tokens=LEAST, ignore_eos=True, n=2, temperature=1)
    return unequal("completion_tokens", reply.completion_tokens, 2 * LEAST)


def _length(call: Caller) -> str | None:
    return unequal("finish_reason", call(max_tokens=LEAST, ignore_eos=True).finish_reason, "length")


def _forced_length(call: Caller) -> str | None:
    return unequal("finish_reason", call(max_tokens=3, logit_bias={"65": 100}).finish_reason, "length")


def _model(call: Caller) -> str | None:
    return unequal("model", call(max_tokens=1).body.get("model"), call.model)


def _prompts(call: Caller) -> str | None:
    """Each prompt is answered as it is alone."""
    prompts = ["Once upon a time", "1, 2, 3, 4,"]
    reply = call(max_tokens=4, prompt=prompts)
    alone = [call(max_tokens=4, prompt=prompt).text for prompt in prompts]
    return unequal("the texts", _by_index(reply), dict(enumerate(alone)))


def _token_lists(call: Caller) -> str | None:
    """Each list is a prompt of its own; the texts of all of them tell what was read."""
    reply = call(max_tokens=1, echo=True, prompt=TOKEN_LISTS)
    alone = [call(max_tokens=1, echo=True, prompt=prompt).text for prompt in TOKEN_LISTS]
    return unequal("the texts", _by_index(reply), dict(enumerate(alone)))


def _counted_once(call: Caller) -> str | None:
    """However many choices a prompt gets; several prompts are counted together."""
    lists = TOKEN_LISTS if "prompt" in call.fields else []
    reply = call(n=2, temperature=1, max_tokens=2, **({"prompt": lists} if lists else {}))
    places = sorted(choice.get("index", -1) for choice in reply.choices)
    wanted = sum(map(len, lists)) or call(max_tokens=2).prompt_tokens
    return unequal("the indexes", places, list(range(2 * max(len(lists), 1)))) or unequal(
        "prompt_tokens", reply.prompt_tokens, wanted
    )


def _created(call: Caller) -> str | None:
    """Within a day of this machine's clock."""
    created = call(max_tokens=1).body.get("created") or 0
    return None if abs(created - time.time()) < DAY else f"created is {created}, not in seconds or of another day"


def _by_index(reply: Reply) -> dict[Json, str]:
    return {choice.get("index"): text for choice, text in zip(reply.choices, reply.texts, strict=True)}


def _least(call: Caller) -> str | None:
    made = call(script=SHORT, max_tokens=2 * LEAST, min_tokens=LEAST).completion_tokens
    return None if made >= LEAST else f"{made} tokens came, not at least {LEAST}"


def _ignored_end(call: Caller) -> str | None:
    made = call(script=SHORT, max_tokens=24, ignore_eos=True).completion_tokens
    return unequal("completion_tokens", made, 24)


def _stop_token(call: Caller) -> str | None:
    """A token that comes anyway becomes one that ends the text."""
    shown: dict[str, Json] = {"logprobs": 1, "return_tokens_as_token_ids": True, "max_tokens": LEAST}
    tokens = (call(**shown).choices[0].get("logprobs") or {}).get("tokens") or []
    if not tokens:
        return "no tokens are told"
    last = int(tokens[-1].removeprefix("token_id:"))
    reply = call(**shown, stop_token_ids=[last])
    return unequal("finish_reason", reply.finish_reason, "stop")


def _answer_effects() -> Iterator[Effect]:
    yield Effect("usage_sum", "total_tokens is the sum of the others.", ("max_tokens",), _sum)
    yield Effect("prompt_tokens", "Tokens of a prompt of tokens are counted.", ("prompt",), _prompt_tokens)
    counted = ("n", "ignore_eos")
    yield Effect("completion_tokens", "Tokens of all choices are counted.", counted, _completion_tokens)
    yield Effect("length", "What max_tokens cut ends with length.", ("ignore_eos",), _length)
    yield Effect("forced_length", "What max_tokens cut ends with length.", ("logit_bias",), _forced_length)
    yield Effect("model", "The answer names the model that was asked.", ("model",), _model)
    yield Effect("prompts", "Each of several prompts gets the choice that it gets alone.", ("prompt",), _prompts)
    yield Effect("token_lists", "Each of several lists is a prompt of its own.", ("prompt", "echo"), _token_lists)
    yield Effect("counted_once", "Each prompt is counted once.", ("n",), _counted_once)
    yield Effect("created", "It is the time of the call, in seconds.", ("model",), _created)
    yield Effect("min_tokens", "The completion does not end before min_tokens.", ("min_tokens",), _least)
    yield Effect("ignore_eos", "With ignore_eos max_tokens are generated.", ("ignore_eos",), _ignored_end)
    shown = ("stop_token_ids", "return_tokens_as_token_ids")
    yield Effect("stop_token_ids", "A stop token ends the completion.", shown, _stop_token)


ANSWER_EFFECTS = tuple(_answer_effects())
"""What an answer must say of itself."""
