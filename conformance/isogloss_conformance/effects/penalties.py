"""Effects that make tokens more or less likely: biases and penalties, with their signs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from isogloss_conformance.effects.caller import Caller, Reply
from isogloss_conformance.effects.effect import Effect, unequal, unprovable

Json = Any
A, B = "65", "66"
"""Two tokens of any vocabulary that stand for visible characters in most."""
FORCED = {A: 100}
PENALTIES = ("presence_penalty", "frequency_penalty")
AHEAD = {A: 100, B: 80}
"""A penalty of 2 does not turn these round, one of 2 for each of 24 times does."""
LONG = 40
"""Tokens of a text of which some come again in any language."""
RIVALS = {str(token): 100 for token in range(33, 97)}
"""Tokens among which a model is at a loss: none is ahead by a penalty of 2 for long."""
HALF = {str(token): -100 for token in range(0, 2048, 2)}
"""Of eight tokens that come, one is among them in most vocabularies."""


def _bias(call: Caller) -> str | None:
    once, often = call(max_tokens=1, logit_bias=FORCED).text, call(max_tokens=4, logit_bias=FORCED).text
    if once == call(max_tokens=1, logit_bias={B: 100}).text:
        return f"two tokens forced by a bias of 100 give one text, {once!r}"
    return unequal("a token forced four times", often.replace(" ", ""), 4 * once.replace(" ", ""))


def _taken_away(call: Caller) -> str | None:
    """The token that comes anyway, where ids are told. Raises NoReply if the text stays and may do so."""
    if "return_tokens_as_token_ids" in call.fields:
        shown: dict[str, Json] = {"max_tokens": 1, "logprobs": 1, "return_tokens_as_token_ids": True}
        came = _tokens(call(**shown))
        bias = {token.removeprefix("token_id:"): -100 for token in came}
        return f"{came} came in spite of a bias of -100" if _tokens(call(**shown, logit_bias=bias)) == came else None
    plain, changed = (call(max_tokens=8, **fields).text for fields in ({}, {"logit_bias": HALF}))
    if plain == changed and not call.scripted:
        raise unprovable("the text stays, and perhaps none of its tokens had a bias")
    return f"the text stays {plain!r}" if plain == changed else None


def _penalty(field: str, values: tuple[float, float], call: Caller) -> str | None:
    """With the first value tokens repeat less than with the second.

    Where no bias can hold a model to few tokens, a longer text has some of them twice.
    """
    biased = "logit_bias" in call.fields and field != "repetition_penalty"
    back, forth = (_long(call, biased, **{field: value}) for value in values)
    if back.text == forth.text:
        return f"with {values} the text is {back.text!r}"
    shares = [_repeated(back), _repeated(forth)]
    return None if shares[0] <= shares[1] else f"with {values} so much of the text is said again: {shares}"


def _flat_and_growing(call: Caller) -> str | None:
    """One penalty counts how often a token came, the other does not.

    Where a bias can put one token a little ahead of another, the flat one leaves it there. Elsewhere both are turned
    into rewards: the one that grows soon brings a single token.
    """
    if "logit_bias" in call.fields:
        flat, growing = (_repeated(_told(call, max_tokens=24, logit_bias=AHEAD, **{name: 2})) for name in PENALTIES)
        return None if flat > growing else f"presence 2 repeats no more than frequency 2: {flat} and {growing}"
    flat, growing = (_repeated(_long(call, False, **{name: -2})) for name in PENALTIES)
    return None if flat <= growing else f"presence -2 repeats more than frequency -2: {flat} and {growing}"


def _long(call: Caller, biased: bool, **fields: Json) -> Reply:
    """A text in which tokens come again, with its tokens."""
    asked: dict[str, Json] = {"max_tokens": 24, "logit_bias": RIVALS} if biased else {"max_tokens": LONG}
    if "ignore_eos" in call.fields:
        asked["ignore_eos"] = True
    return _told(call, **asked, **fields)


def _told(call: Caller, **fields: Json) -> Reply:
    return call(logprobs=True if "messages" in call.fields else 1, **fields)


def _repeated(reply: Reply) -> float:
    """The share of pairs of tokens that are equal; 0 if no tokens are told."""
    tokens = _tokens(reply)
    pairs = len(tokens) * (len(tokens) - 1)
    return sum(times * (times - 1) for times in Counter(tokens).values()) / max(pairs, 1)


def _tokens(reply: Reply) -> list[str]:
    logprobs = reply.choices[0].get("logprobs") or {}
    return logprobs.get("tokens") or [item.get("token") for item in logprobs.get("content") or ()]


def _penalty_effects() -> Iterator[Effect]:
    yield Effect("bias", "A bias of 100 forces a token.", ("logit_bias",), _bias)
    yield Effect("negative_bias", "A bias of -100 takes a token away.", ("logit_bias", "logprobs"), _taken_away)
    for name in PENALTIES:
        yield Effect(name, f"{name} sets back what was said.", (name, "logprobs"), partial(_penalty, name, (2, -2)))
    repetition = ("repetition_penalty", "logprobs")
    look = partial(_penalty, "repetition_penalty", (2.0, 0.5))
    yield Effect("repetition_penalty", "Above 1 it sets back what was said.", repetition, look)
    yield Effect(
        "penalties", "frequency_penalty grows, presence_penalty does not.", (*PENALTIES, "logprobs"), _flat_and_growing
    )


PENALTY_EFFECTS = tuple(_penalty_effects())
"""What biases and penalties must do."""
