"""Effects of the fields that generate more sequences than one and choose among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isogloss_conformance.effects.caller import Caller
from isogloss_conformance.effects.effect import SEEDS, Effect, unequal

Json = Any
CANDIDATES = 16
"""So many that their best is likelier than one of chance, summed over a few seeds, on whatever model has a choice."""
SEQUENCES = 5
"""So many that chance brings them in order once in 120 times."""
TOKENS = 8


def _best_of(call: Caller) -> str | None:
    shown: dict[str, Json] = {"max_tokens": TOKENS, "temperature": 1, "logprobs": 1}
    alone = sum(_total(call(seed=seed, **shown).choices[0]) for seed in SEEDS)
    best = sum(_total(call(seed=seed, best_of=CANDIDATES, **shown).choices[0]) for seed in SEEDS)
    return None if best > alone else f"the best of {CANDIDATES} have a log probability of {best}, those alone {alone}"


def _all_best_first(call: Caller) -> str | None:
    """Sequences of one length: it does not matter whether they are compared by sum or by mean."""
    shown: dict[str, Json] = {"max_tokens": TOKENS, "ignore_eos": True, "temperature": 1, "logprobs": True}
    choices = call(seed=1, best_of=SEQUENCES, **shown).choices
    totals = [_total(choice) for choice in sorted(choices, key=_index)]
    wrong = unequal("the number of choices", len(totals), SEQUENCES)
    return wrong or unequal("the log probabilities", totals, sorted(totals, reverse=True))


def _beams(call: Caller) -> str | None:
    """A search leaves nothing to chance, and finds each sequence once."""
    asked = {"max_tokens": TOKENS, "ignore_eos": True, "temperature": 1, "n": 3, "use_beam_search": True}
    found, again = (call(seed=seed, **asked).texts for seed in (1, 2))
    if len(set(found)) < min(2, len(found)):
        return f"all sequences say {found[0]!r}"
    return unequal("the number of sequences", len(found), 3) or unequal("the texts with another seed", again, found)


def _total(choice: Mapping[str, Json]) -> float:
    """The log probability of a whole choice; 0 if nothing is told."""
    logprobs = choice.get("logprobs") or {}
    told = logprobs.get("token_logprobs") or [token.get("logprob") for token in logprobs.get("content") or ()]
    return sum(logprob or 0.0 for logprob in told)


def _index(choice: Mapping[str, Json]) -> int:
    return choice.get("index") or 0


def _search_effects() -> Iterator[Effect]:
    yield Effect("best_of", "The likeliest of several is chosen.", ("best_of", "logprobs", "prompt"), _best_of)
    every = ("best_of", "logprobs", "ignore_eos", "messages")
    yield Effect("best_of_all", "best_of gives that many choices, best first.", every, _all_best_first)
    yield Effect(
        "beams", "A search finds several sequences, the same with any seed.", ("use_beam_search", "ignore_eos"), _beams
    )


SEARCH_EFFECTS = tuple(_search_effects())
