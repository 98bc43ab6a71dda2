"""The effects step: an accepted field does what it says.

Each criterion is one that the weakest model meets: a bias of 100 outweighs any logit, tokens can be counted, two calls
are equal or they are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from isogloss_conformance.answer_effects import ANSWER_EFFECTS
from isogloss_conformance.call_effects import CALL_EFFECTS
from isogloss_conformance.caller import Caller, NoReply
from isogloss_conformance.checks import Check
from isogloss_conformance.effect import SEEDS, Effect, unequal
from isogloss_conformance.media_effects import MEDIA_EFFECTS
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.search_effects import SEARCH_EFFECTS
from isogloss_conformance.session import Session
from isogloss_conformance.token_effects import TOKEN_EFFECTS

Json = Any
A, B = "65", "66"
"""Two tokens of any vocabulary that stand for visible characters in most."""
FORCED = {A: 100}
RIVALS = {str(token): 100 for token in range(33, 97)}
"""Tokens among which a model is at a loss: none is ahead by a penalty of 2 for long."""
BLANKS = {"prefer_tokens": [" "]}
"""A script for an engine that follows one."""
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}


class EffectsStep:
    """One check for each effect of a field that the dialect has."""

    name = "effects"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._caller = Caller(session)

    def checks(self) -> list[Check]:
        """The effects of the dialect's fields."""
        return [self._check(effect) for effect in EFFECTS if set(effect.fields) <= self._caller.fields]

    def _check(self, effect: Effect) -> Check:
        check_id = f"{self._session.dialect}/effects/{effect.name}"
        return Check(check_id, self.name, effect.sentence, partial(self._look, effect), "extended", "inferred")

    def _look(self, effect: Effect) -> Outcome:
        try:
            wrong = effect.look(self._caller)
        except NoReply as reason:
            return reason.outcome
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            wrong = self._caller.misshapen()
            if wrong is None:  # the fault is ours
                raise
            wrong = f"{wrong} (and cannot be read: {type(error).__name__})"
        return Outcome(Status.FAIL if wrong else Status.PASS, effect.sentence, wrong or "so it is")


def _max_tokens(call: Caller) -> str | None:
    reply = call(max_tokens=3)
    if reply.finish_reason == "length":
        return unequal("completion_tokens", reply.completion_tokens, 3)
    return None if reply.completion_tokens <= 3 else f"{reply.completion_tokens} tokens came"


def _greedy(call: Caller) -> str | None:
    return unequal("the second text", call(max_tokens=8).text, _words(call))


def _only_the_likeliest(call: Caller, **fields: Json) -> str | None:
    """With this field sampling is left no choice."""
    return unequal("the text", call(max_tokens=8, temperature=1, **fields).text, _words(call))


def _words(call: Caller, tokens: int = 8) -> str:
    """What the model says anyway. Raises NoReply if it says nothing, which proves nothing."""
    said = call(max_tokens=tokens).text
    if not said:
        raise NoReply(Outcome(Status.SKIP, got="unprovable: the model says nothing"))
    return said


def _seed(call: Caller) -> str | None:
    first = [call(max_tokens=12, temperature=1, seed=seed).text for seed in SEEDS]
    again = [call(max_tokens=12, temperature=1, seed=seed).text for seed in SEEDS]
    if first != again:
        return f"the same seeds gave {first} and {again}"
    return None if len(set(first)) > 1 else "all seeds give one text"


def _n(call: Caller) -> str | None:
    reply = call(max_tokens=12, temperature=1, n=3, seed=1)
    wrong = unequal("the indexes", sorted(choice.get("index") for choice in reply.choices), [0, 1, 2])
    return wrong or (None if len(set(reply.texts)) > 1 else f"all choices say {reply.text!r}")


def _said(call: Caller) -> tuple[str, str]:
    """What the model says anyway, and a text from its middle. Raises NoReply if it says nothing."""
    said = _words(call, 12)
    return said, said[len(said) // 2 : len(said) // 2 + 3]


def _stop(call: Caller) -> str | None:
    """The text that comes is the second of the list."""
    said, word = _said(call)
    reply = call(max_tokens=12, stop=[f"{word}#", word])
    return unequal("the text", reply.text, said[: said.index(word)]) or unequal(
        "finish_reason", reply.finish_reason, "stop"
    )


def _include_stop(call: Caller) -> str | None:
    said, word = _said(call)
    reply = call(max_tokens=12, stop=[word], include_stop_str_in_output=True)
    return unequal("the text", reply.text, said[: said.index(word)] + word)


def _bias(call: Caller) -> str | None:
    once, often = call(max_tokens=1, logit_bias=FORCED).text, call(max_tokens=4, logit_bias=FORCED).text
    if once == call(max_tokens=1, logit_bias={B: 100}).text:
        return f"two tokens forced by a bias of 100 give one text, {once!r}"
    return unequal("a token forced four times", often.replace(" ", ""), 4 * once.replace(" ", ""))


def _penalty(field: str, call: Caller) -> str | None:
    """Where no bias can hold a model to few tokens, a longer text has some of them twice."""
    asked = {"max_tokens": 24, "logit_bias": RIVALS} if "logit_bias" in call.fields else {"max_tokens": 64}
    plain, changed = call(**asked).text, call(**asked, **{field: 2}).text
    return None if plain != changed else f"the text stays {plain!r}"


def _repetition(call: Caller) -> str | None:
    plain, changed = call(max_tokens=64).text, call(max_tokens=64, repetition_penalty=2.0).text
    return None if plain != changed else "64 tokens stay the same"


def _echo(call: Caller) -> str | None:
    reply = call(max_tokens=1, echo=True, prompt="Once upon a time")
    return None if reply.text.startswith("Once upon a time") else f"the text begins {reply.text[:40]!r}"


def _logprobs(call: Caller) -> str | None:
    logprobs = call(max_tokens=3, logprobs=2).choices[0].get("logprobs") or {}
    tokens, top = logprobs.get("tokens") or [], logprobs.get("top_logprobs") or []
    if not tokens or len(tokens) != len(top):
        return f"{len(tokens)} tokens and {len(top)} lists of alternatives came"
    sizes = {len(alternatives) for alternatives in top}
    if not sizes <= {2, 3}:
        return f"the lists hold {sorted(sizes)} alternatives, not 2"
    made = logprobs.get("token_logprobs") or [None]
    likeliest = [max(alternatives.values()) for alternatives in top]
    return None if made == likeliest and max(made) <= 0 else f"greedy tokens have {made}, the likeliest {likeliest}"


def _chat_logprobs(call: Caller) -> str | None:
    content = (call(max_tokens=3, logprobs=True, top_logprobs=2).choices[0].get("logprobs") or {}).get("content") or []
    sizes = {len(item.get("top_logprobs") or ()) for item in content}
    return unequal("the numbers of alternatives", sizes, {2})


def _prompt_logprobs(call: Caller) -> str | None:
    reply = call(max_tokens=1, prompt_logprobs=1)
    found = reply.choices[0].get("prompt_logprobs") or ()
    return unequal("the entries", len(found), (reply.body.get("usage") or {}).get("prompt_tokens"))


def _token_ids(call: Caller) -> str | None:
    reply = call(max_tokens=3, return_tokens_as_token_ids=True, logprobs=1)
    tokens = (reply.choices[0].get("logprobs") or {}).get("tokens") or [""]
    return None if all(token.startswith("token_id:") for token in tokens) else f"tokens are {tokens}"


def _choice(call: Caller) -> str | None:
    text = call(max_tokens=16, guided_choice=["yes", "no"]).text
    return None if text in ("yes", "no") else f"the text is {text!r}"


def _regex(call: Caller) -> str | None:
    text = call(max_tokens=16, guided_regex="[0-9]{3}").text
    return None if re.fullmatch("[0-9]{3}", text) else f"the text is {text!r}"


def _grammar(call: Caller) -> str | None:
    text = call(max_tokens=16, guided_grammar='root ::= "yes" | "no"').text
    return None if text in ("yes", "no") else f"the text is {text!r}"


def _older_place(call: Caller) -> str | None:
    text = call(max_tokens=16, nvext={"guided_choice": ["yes", "no"]}).text
    return None if text in ("yes", "no") else f"the text is {text!r}"


def _json_schema(call: Caller, **fields: Json) -> str | None:
    text = "".join(call(max_tokens=64, **fields).text.split())
    fits = any(
        whole.startswith(text) for whole in ('{"a":true}', '{"a":false}')
    )  # weak models write blanks until the end
    return None if fits and text else f"the text is {text!r}"


def _whitespace(call: Caller) -> str | None:
    """An engine that follows scripts is told to write blanks wherever it may."""
    text = call(script=BLANKS, max_tokens=16, guided_json=SCHEMA, guided_whitespace_pattern="").text
    return f"the text is {text!r}" if not text or re.search(r"\s", text) else None


def _effects() -> Iterator[Effect]:
    yield Effect("max_tokens", "max_tokens bounds the completion.", ("max_tokens",), _max_tokens)
    yield Effect("temperature", "At temperature 0 two calls give one text.", ("temperature",), _greedy)
    yield Effect("top_k", "top_k 1 leaves the likeliest token.", ("top_k",), partial(_only_the_likeliest, top_k=1))
    yield Effect(
        "top_p", "A tiny top_p leaves the likeliest token.", ("top_p",), partial(_only_the_likeliest, top_p=1e-5)
    )
    yield Effect("min_p", "min_p 1 leaves the likeliest token.", ("min_p",), partial(_only_the_likeliest, min_p=1))
    yield Effect("seed", "A seed repeats a completion, and seeds differ.", ("seed",), _seed)
    yield Effect("n", "n gives that many choices.", ("n",), _n)
    yield Effect("stop", "A stop text ends the completion before it.", ("stop",), _stop)
    yield Effect(
        *("include_stop", "include_stop_str_in_output keeps the stop text."),
        ("include_stop_str_in_output",),
        _include_stop,
    )
    yield Effect("bias", "A bias of 100 forces a token.", ("logit_bias",), _bias)
    for name in ("presence_penalty", "frequency_penalty"):
        yield Effect(name, f"{name} sets back what was said.", (name,), partial(_penalty, name))
    yield Effect("repetition_penalty", "It changes what is said.", ("repetition_penalty",), _repetition)
    yield Effect("echo", "echo repeats the prompt.", ("echo",), _echo)
    yield Effect("logprobs", "logprobs 2 gives two alternatives a token.", ("logprobs", "prompt"), _logprobs)
    yield Effect(
        *("top_logprobs", "top_logprobs 2 gives two alternatives a token."),
        ("top_logprobs", "logprobs"),
        _chat_logprobs,
    )
    yield Effect("prompt_logprobs", "There is an entry for each token.", ("prompt_logprobs",), _prompt_logprobs)
    yield Effect("token_ids", "Tokens are shown as ids.", ("return_tokens_as_token_ids",), _token_ids)
    yield Effect("guided_choice", "The completion is one of the choices.", ("guided_choice",), _choice)
    yield Effect("guided_regex", "The completion matches.", ("guided_regex",), _regex)
    yield Effect("guided_grammar", "The completion follows the grammar.", ("guided_grammar",), _grammar)
    yield Effect("nvext", "A guide in nvext is followed.", ("nvext",), _older_place)
    fits = "The completion fits the schema."
    yield Effect("guided_json", fits, ("guided_json",), partial(_json_schema, guided_json=SCHEMA))
    blank = ("guided_whitespace_pattern", "guided_json")
    yield Effect("whitespace", "Between the parts stands what the pattern allows.", blank, _whitespace)
    yield Effect("response_format", fits, ("response_format",), partial(_json_schema, response_format=FORM))


EFFECTS = (*_effects(), *ANSWER_EFFECTS, *TOKEN_EFFECTS, *SEARCH_EFFECTS, *CALL_EFFECTS, *MEDIA_EFFECTS)
