"""Effects on chance: what is left to it, what repeats, and what holds where a call says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from isogloss_conformance.effects.caller import Caller
from isogloss_conformance.effects.effect import SEEDS, Effect, unequal, unprovable, words

Json = Any
FORCED = {"65": 100}
DRAWN = 8
"""Tokens of a text that chance does not bring twice."""


def _greedy(call: Caller) -> str | None:
    said = words(call)
    return unequal("the second text", call(max_tokens=8).text, said) or _unless_fixed(call, said)


def _only_the_likeliest(call: Caller, **fields: Json) -> str | None:
    """With this field sampling is left no choice."""
    said = words(call)
    bound = call(max_tokens=8, temperature=1, **fields).text
    return unequal("the text", bound, said) or _unless_fixed(call, said)


def _unless_fixed(call: Caller, said: str) -> str | None:
    """Nothing is wrong. Raises NoReply if chance brings nothing else: then two equal texts prove nothing."""
    if all(call(max_tokens=8, temperature=1).text == said for _ in SEEDS):
        raise unprovable("the same text comes at temperature 1, too")
    return None


def _seed(call: Caller) -> str | None:
    first, again = _seeded(call), _seeded(call)
    if first != again:
        return f"the same seeds gave {first} and {again}"
    return None if len(set(first)) > 1 else "all seeds give one text"


def _seeded(call: Caller) -> list[str]:
    return [call(max_tokens=DRAWN, temperature=1, seed=seed).text for seed in SEEDS]


def _several(call: Caller) -> tuple[list[Json], list[str]]:
    reply = call(max_tokens=DRAWN, temperature=1, n=3, seed=1)
    return sorted(choice.get("index") for choice in reply.choices), reply.texts


def _n(call: Caller) -> str | None:
    places, texts = _several(call)
    wrong = unequal("the indexes", places, [0, 1, 2])
    return wrong or (None if len(set(texts)) > 1 else f"all choices say {texts[0]!r}")


def _seeded_choices(call: Caller) -> str | None:
    (_, first), (_, again) = _several(call), _several(call)
    wrong = unequal("the texts with the same seed", again, first)
    return wrong or (None if len(set(first)) > 1 else f"all choices say {first[0]!r}")


def _unseeded(call: Caller) -> str | None:
    """Neither a seed nor a temperature is given. Raises NoReply where seeds do not give as many texts as they are."""
    if not call.defaults.get("temperature"):
        raise unprovable("the document names no temperature that holds without one")
    texts = {call(max_tokens=DRAWN, temperature=...).text for _ in SEEDS}
    if len(texts) > 1:
        return None
    if len(set(_seeded(call))) < len(SEEDS) and not call.scripted:
        raise unprovable("seeds change little")
    return f"{len(SEEDS)} calls without a seed and a temperature gave one text, {texts.pop()!r}"


def _without_max_tokens(call: Caller) -> str | None:
    if "max_tokens" not in call.defaults:
        raise unprovable("the document names no count that holds without one")
    made = call(max_tokens=..., logit_bias=FORCED).completion_tokens
    return unequal("completion_tokens", made, call.defaults["max_tokens"])


def _nothing_stays(call: Caller) -> str | None:
    """A call is what it was before another that asked for much."""
    before = words(call)
    asked: dict[str, Json] = {"stop": [before[:1]]} | ({"logit_bias": FORCED} if "logit_bias" in call.fields else {})
    if call(max_tokens=8, presence_penalty=2, **asked).text == before:
        return f"{', '.join(asked)} change nothing"
    return unequal("the text behind a call with other fields", call(max_tokens=8).text, before)


def _chance_effects() -> Iterator[Effect]:
    yield Effect("temperature", "At temperature 0 two calls give one text.", ("temperature",), _greedy)
    yield Effect("top_k", "top_k 1 leaves the likeliest token.", ("top_k",), partial(_only_the_likeliest, top_k=1))
    yield Effect(
        "top_p", "A tiny top_p leaves the likeliest token.", ("top_p",), partial(_only_the_likeliest, top_p=1e-5)
    )
    yield Effect("min_p", "min_p 1 leaves the likeliest token.", ("min_p",), partial(_only_the_likeliest, min_p=1))
    yield Effect("seed", "A seed, 0 too, repeats a completion, and seeds differ.", ("seed",), _seed)
    yield Effect("n", "n gives that many choices.", ("n",), _n)
    yield Effect("seed_n", "A seed repeats all choices, and they differ.", ("seed", "n"), _seeded_choices)
    yield Effect("unseeded", "Without seed and temperature chance decides.", ("seed", "temperature"), _unseeded)
    absent = ("max_tokens", "logit_bias")
    yield Effect("max_tokens_default", "Without max_tokens the default holds.", absent, _without_max_tokens)
    yield Effect("nothing_stays", "A call's fields hold for that call.", ("stop", "presence_penalty"), _nothing_stays)


CHANCE_EFFECTS = tuple(_chance_effects())
"""What chance may and may not do."""
