"""Effects on log probabilities: whose they are, where their tokens stand in the text, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from isogloss_conformance.effects.answers import TOKEN_PROMPT
from isogloss_conformance.effects.caller import Caller
from isogloss_conformance.effects.effect import Effect, unequal, unprovable

Json = Any
TEXT = "Grüße, 世界, and so on"
"""Has fewer characters than bytes and more than tokens, so that places counted otherwise show."""
OTHER_PROMPT = [67, 66, 65]
CLOSE = 1e-3
"""How far the same value of two calls may be apart, relatively: calls are computed in different company."""


def _logprobs(call: Caller) -> str | None:
    logprobs = _lists(call(max_tokens=3, logprobs=2).choices[0])
    tokens, top = logprobs.get("tokens") or [], logprobs.get("top_logprobs") or []
    if not tokens or len(tokens) != len(top):
        return f"{len(tokens)} tokens and {len(top)} lists of alternatives came"
    sizes = {len(alternatives) for alternatives in top}
    if not sizes <= {2, 3}:
        return f"the lists hold {sorted(sizes)} alternatives, not 2"
    made = logprobs.get("token_logprobs") or [None]
    likeliest = [max(alternatives.values()) for alternatives in top]
    return None if made == likeliest and max(made) <= 0 else f"greedy tokens have {made}, the likeliest {likeliest}"


def _none_beside(call: Caller) -> str | None:
    """The values of the tokens themselves are told all the same."""
    few, more = (_lists(call(max_tokens=4, logprobs=wanted).choices[0]) for wanted in (0, 2))
    if not few.get("token_logprobs"):
        return "no log probabilities came"
    sizes = {len(alternatives or ()) for alternatives in few.get("top_logprobs") or ()}
    if max(sizes, default=0) > 1:
        return f"the lists hold {sorted(sizes)} alternatives"
    return _apart("without alternatives", few["token_logprobs"], more.get("token_logprobs") or [])


def _apart(what: str, got: Sequence[float], wanted: Sequence[float]) -> str | None:
    near = len(got) == len(wanted) and all(
        math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE) for a, b in zip(got, wanted, strict=True)
    )
    return None if near else f"{what} the values are {got}, with them {wanted}"


def _chat_logprobs(call: Caller) -> str | None:
    """Greedy tokens are the likeliest; equal values of all tokens are nobody's."""
    content = (call(max_tokens=8, logprobs=True, top_logprobs=2).choices[0].get("logprobs") or {}).get("content") or []
    wrong = unequal("the numbers of alternatives", {len(item.get("top_logprobs") or ()) for item in content}, {2})
    if wrong:
        return wrong
    strangers = [item.get("token") for item in content if not _is_likeliest(item)]
    if strangers:
        return f"not among their alternatives as the likeliest, with their value: {strangers[:3]}"
    values = {item["logprob"] for item in content}
    return f"all tokens have the value {values}" if len(values) == 1 < len(content) else None


def _is_likeliest(item: Mapping[str, Json]) -> bool:
    """Whether a token stands among its own alternatives, with its value, which is the highest."""
    best = max(other["logprob"] for other in item["top_logprobs"])
    same = (other for other in item["top_logprobs"] if other["token"] == item["token"])
    return item["logprob"] == best <= 0 and any(other["logprob"] == best for other in same)


def _prompt_logprobs(call: Caller) -> str | None:
    """The first token has none; each other one stands in its own entry."""
    reply = call(max_tokens=1, prompt_logprobs=1, prompt=TOKEN_PROMPT)
    found = reply.choices[0].get("prompt_logprobs") or []
    if wrong := unequal("the entries", len(found), len(TOKEN_PROMPT)):
        return wrong
    if found[0] is not None:
        return f"the first entry is {found[0]}, not null"
    missing = [token for token, entry in zip(TOKEN_PROMPT[1:], found[1:], strict=True) if str(token) not in entry]
    return f"tokens {missing} are not in their entries" if missing else None


def _echoed(call: Caller) -> str | None:
    """The tokens of the prompt have log probabilities, too, all but the first."""
    reply = call(max_tokens=1, echo=True, logprobs=1, prompt=TEXT)
    values = _lists(reply.choices[0]).get("token_logprobs") or []
    if len(values) < reply.prompt_tokens:
        return f"{len(values)} values came, and the prompt has {reply.prompt_tokens} tokens"
    if values[0] is not None or None in values[1:]:
        return f"the first value is not null, or another is: {values[:4]}"
    return None if len(set(values[1:])) > 1 else f"all tokens have the value {values[1]}"


def _offsets(call: Caller) -> str | None:
    """Where the tokens make up the text, each begins where the one before ends. Raises NoReply where they don't."""
    choices = [
        *call(max_tokens=8, logprobs=1).choices,
        *call(max_tokens=2, logprobs=1, echo=True, prompt=TEXT).choices,
    ]
    if not all(_lists(choice).get("tokens") for choice in choices):
        return "no tokens came"
    plain = [choice for choice in choices if _joins(choice)]
    if not plain:
        raise unprovable("the tokens do not make up the text")
    wrong = (_misplaced(choice) for choice in plain)
    return next((text for text in wrong if text), None)


def _joins(choice: Mapping[str, Json]) -> bool:
    text: str = choice["text"]
    return text == "".join(_lists(choice).get("tokens") or ())


def _misplaced(choice: Mapping[str, Json]) -> str | None:
    lists = _lists(choice)
    wanted = list(accumulate(map(len, lists.get("tokens") or ()), initial=0))[:-1]
    return unequal("the offsets", lists.get("text_offset"), wanted)


def _each_choice(call: Caller) -> str | None:
    """Tokens of each choice are told, not those of the first alone."""
    asked: dict[str, Json] = {"max_tokens": 6, "n": 2, "temperature": 1, "seed": 1}
    choices = call(**asked, logprobs=True if "messages" in call.fields else 1).choices
    told = [_lists(choice).get("tokens") or _lists(choice).get("content") or [] for choice in choices]
    if not all(told):
        return f"the choices have log probabilities of {list(map(len, told))} tokens"
    if len(set(_texts(choices))) > 1 and told[0] == told[1]:
        return "two choices differ, and their log probabilities do not"
    return None


def _texts(choices: Sequence[Mapping[str, Json]]) -> list[str]:
    return [choice["text"] if "text" in choice else choice["message"]["content"] for choice in choices]


def _read_tokens(call: Caller) -> str | None:
    """What a prompt of tokens holds is repeated, and changes what may follow."""
    prompts = (TOKEN_PROMPT, OTHER_PROMPT)
    alone = [call(max_tokens=1, prompt=prompt, logprobs=5) for prompt in prompts]
    echoes = [call(max_tokens=1, prompt=prompt, echo=True).text for prompt in prompts]
    if echoes[0] == echoes[1] or len(echoes[0]) <= len(alone[0].text):
        return f"echoes of {prompts} are {echoes}"
    values = [_lists(reply.choices[0]).get("token_logprobs") for reply in alone]
    tops = [_lists(reply.choices[0]).get("top_logprobs") for reply in alone]
    return "two prompts give the same log probabilities" if (values[0], tops[0]) == (values[1], tops[1]) else None


def _lists(choice: Mapping[str, Json]) -> Mapping[str, Json]:
    found: Mapping[str, Json] = choice.get("logprobs") or {}
    return found


def _logprob_effects() -> Iterator[Effect]:
    plain = ("logprobs", "prompt")
    yield Effect("logprobs", "logprobs 2 gives two alternatives a token.", plain, _logprobs)
    yield Effect("logprobs_0", "logprobs 0 gives the tokens' own values.", plain, _none_beside)
    asked = ("top_logprobs", "logprobs")
    yield Effect("top_logprobs", "Tokens stand among two alternatives, with their values.", asked, _chat_logprobs)
    sentence = "There is an entry for each token of the prompt, null for the first."
    yield Effect("prompt_logprobs", sentence, ("prompt_logprobs", "prompt"), _prompt_logprobs)
    echoed = ("echo", "logprobs", "prompt")
    yield Effect("echoed_logprobs", "Tokens of an echoed prompt have log probabilities.", echoed, _echoed)
    yield Effect("text_offset", "Offsets are places in the text, in characters.", echoed, _offsets)
    yield Effect("each_logprobs", "Each choice has log probabilities.", ("logprobs", "n", "seed"), _each_choice)
    yield Effect("read_tokens", "What a prompt of tokens holds counts.", echoed, _read_tokens)


LOGPROB_EFFECTS = tuple(_logprob_effects())
"""What log probabilities must be."""
