"""The effects step: an accepted field does what it says.

Each criterion is one that the weakest model meets: a bias of 100 outweighs any logit, tokens can be counted, two calls
are equal or they are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from isogloss_conformance.checks import Check
from isogloss_conformance.effects.answers import ANSWER_EFFECTS
from isogloss_conformance.effects.caller import Caller, NoReply
from isogloss_conformance.effects.calls import CALL_EFFECTS
from isogloss_conformance.effects.chance import CHANCE_EFFECTS
from isogloss_conformance.effects.effect import Effect, unequal, unprovable
from isogloss_conformance.effects.logprobs import LOGPROB_EFFECTS
from isogloss_conformance.effects.media import MEDIA_EFFECTS
from isogloss_conformance.effects.penalties import PENALTY_EFFECTS
from isogloss_conformance.effects.search import SEARCH_EFFECTS
from isogloss_conformance.effects.stops import STOP_EFFECTS
from isogloss_conformance.effects.tokens import TOKEN_EFFECTS
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session

Json = Any
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


def _echo(call: Caller) -> str | None:
    reply = call(max_tokens=1, echo=True, prompt="Once upon a time")
    return None if reply.text.startswith("Once upon a time") else f"the text begins {reply.text[:40]!r}"


def _token_ids(call: Caller) -> str | None:
    reply = call(max_tokens=3, return_tokens_as_token_ids=True, logprobs=1)
    tokens = (reply.choices[0].get("logprobs") or {}).get("tokens") or [""]
    return None if all(token.startswith("token_id:") for token in tokens) else f"tokens are {tokens}"


def _choice(call: Caller) -> str | None:
    """A greedy model chooses the same in whatever order."""
    texts = [call(max_tokens=16, guided_choice=choices).text for choices in (["yes", "no"], ["no", "yes"])]
    if not set(texts) <= {"yes", "no"}:
        return f"the texts are {texts}"
    return unequal("the choice with the choices in another order", texts[1], texts[0])


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


def _json_object(call: Caller) -> str | None:
    """What was cut is the begin of one. Raises NoReply if only blanks came."""
    reply = call(max_tokens=64, response_format={"type": "json_object"})
    text = reply.text.strip()
    if not text:
        raise unprovable("the model writes blanks")
    cut = reply.finish_reason == "length" and re.match(r'\{\s*("|$)', text)
    return None if cut or _is_object(text) else f"the text is {text!r}"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _whitespace(call: Caller) -> str | None:
    """An engine that follows scripts is told to write blanks wherever it may."""
    text = call(script=BLANKS, max_tokens=16, guided_json=SCHEMA, guided_whitespace_pattern="").text
    return f"the text is {text!r}" if not text or re.search(r"\s", text) else None


def _effects() -> Iterator[Effect]:
    yield Effect("max_tokens", "max_tokens bounds the completion.", ("max_tokens",), _max_tokens)
    yield Effect("echo", "echo repeats the prompt.", ("echo",), _echo)
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
    yield Effect("json_object", "The completion is a JSON object.", ("response_format",), _json_object)


EFFECTS = (
    *_effects(),
    *CHANCE_EFFECTS,
    *PENALTY_EFFECTS,
    *STOP_EFFECTS,
    *LOGPROB_EFFECTS,
    *ANSWER_EFFECTS,
    *TOKEN_EFFECTS,
    *SEARCH_EFFECTS,
    *CALL_EFFECTS,
    *MEDIA_EFFECTS,
)
