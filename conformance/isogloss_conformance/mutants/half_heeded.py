"""Mutants that heed a field by half: with the wrong sign, in one form, for one choice alone, for the next call, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isogloss_conformance.mutants.wire import Got, Mutant, Sent

Json = Any
Body = dict[str, Json]
N = "nim/effects"
PENALTIES = ("presence_penalty", "frequency_penalty")


def _ignores_if(name: str, killer: str, field: str, holds: Callable[[Json], bool]) -> Mutant:
    """Ignores a field with some values."""

    def request(sent: Sent) -> Sent:
        return sent.having(**{field: ...}) if field in sent.json and holds(sent.json[field]) else sent

    return Mutant(name, killer, request)


def _reads(name: str, killer: str, field: str, read: Callable[[Json], Json]) -> Mutant:
    """Reads some values of a field as others. Whatever cannot be read so stays."""

    def request(sent: Sent) -> Sent:
        try:
            return sent.having(**{field: read(sent.json[field])})
        except (KeyError, TypeError, AttributeError):
            return sent

    return Mutant(name, killer, request)


def _without(name: str, killer: str, field: str, **default: Json) -> Mutant:
    """Has a default of its own for a field."""

    def request(sent: Sent) -> Sent:
        return sent.having(**default) if sent.json and sent.json.get(field) is None else sent

    return Mutant(name, killer, request)


def _each(name: str, killer: str, change: Callable[[Body, Body], Mapping[str, Json]]) -> Mutant:
    """Changes members of each choice, given the choice and the request."""

    def answer(sent: Sent, got: Got) -> Got:
        if got.status != 200 or not got.json.get("choices"):
            return got
        choices = [{**choice, **change(choice, sent.json)} for choice in got.json["choices"]]
        return got.holding({**got.json, "choices": choices})

    return Mutant(name, killer, answer=answer)


def _lists(name: str, killer: str, change: Callable[[Body, Body], Mapping[str, Json]]) -> Mutant:
    """Changes the lists of log probabilities, given them and the request."""

    def changed(choice: Body, body: Body) -> Mapping[str, Json]:
        lists = choice.get("logprobs")
        return {"logprobs": {**lists, **change(lists, body)}} if lists else {}

    return _each(name, killer, changed)


def _whole(name: str, killer: str, change: Callable[[Body, Body], Mapping[str, Json]]) -> Mutant:
    """Changes members of an answer, given the answer and the request."""

    def answer(sent: Sent, got: Got) -> Got:
        if got.status != 200 or not got.json.get("choices"):
            return got
        return got.holding({**got.json, **change(got.json, sent.json)})

    return Mutant(name, killer, answer=answer)


def _prompt_counts(name: str, killer: str, counted: Callable[[int, Body], int]) -> Mutant:
    """Counts the tokens of prompts otherwise, given the right count and the request."""

    def usage(answer: Body, body: Body) -> Mapping[str, Json]:
        made = answer["usage"]["completion_tokens"]
        told = counted(answer["usage"]["prompt_tokens"], body)
        return {"usage": {**answer["usage"], "prompt_tokens": told, "total_tokens": told + made}}

    return _whole(name, killer, usage)


def _penalties(name: str, killer: str, change: Callable[[Json, Json], tuple[Json, Json]]) -> Mutant:
    """Changes presence and frequency penalty, `...` for one that is not given."""

    def request(sent: Sent) -> Sent:
        given = [sent.json.get(field, ...) for field in PENALTIES]
        if not all(value is ... or isinstance(value, int | float) for value in given):
            return sent
        return sent.having(**dict(zip(PENALTIES, change(*given), strict=True)))

    return Mutant(name, killer, request)


def _negated(value: Json) -> Json:
    return value if value is ... else -value


class _Leak:
    """A bias holds for the next call, too."""

    def __init__(self) -> None:
        self._former: Json = None

    def request(self, sent: Sent) -> Sent:
        former, self._former = self._former, sent.json.get("logit_bias")
        return sent.having(logit_bias=former) if former and sent.json and "logit_bias" not in sent.json else sent


def _positive(bias: Json) -> Json:
    return {token: value for token, value in bias.items() if value > 0}


def _is_tokens(prompt: Json) -> bool:
    return isinstance(prompt, list) and all(isinstance(token, int) for token in prompt)


def _same_tokens(prompt: Json) -> Json:
    return [70] * len(prompt) if _is_tokens(prompt) else prompt


def _first_list(prompt: Json) -> Json:
    return prompt[:1] if isinstance(prompt[0], list) else prompt


def _first_text(messages: Json) -> Json:
    return [{**said, "content": said["content"][:1] if _has_parts(said) else said["content"]} for said in messages]


def _has_parts(message: Body) -> bool:
    return isinstance(message["content"], list) and all(part["type"] == "text" for part in message["content"])


def _no_system(messages: Json) -> Json:
    return [said for said in messages if said["role"] != "system"] or messages


def _behind_prompt(lists: Body, body: Body) -> Body:
    made = body.get("max_tokens") or 16
    return {name: values[-made:] for name, values in lists.items()} if body.get("echo") else {}


def _in_bytes(lists: Body, body: Body) -> Body:
    ends = [0]
    for token in lists["tokens"]:
        ends.append(ends[-1] + len(token.encode()))
    return {"text_offset": ends[:-1]}


def _first_alone(member: str, otherwise: Callable[[Body, Body], Json]) -> Callable[[Body, Body], Mapping[str, Json]]:
    """Spoils a member of all choices but the first."""
    return lambda choice, body: {member: otherwise(choice, body)} if choice["index"] else {}


def _unstopped(choice: Body, body: Body) -> str:
    stops = body.get("stop") or ""
    return str(choice["text"]) + (stops if isinstance(stops, str) else stops[0])


def _made_up(lists: Body, body: Body) -> Body:
    return {"content": [{**item, "logprob": -7.0} for item in lists["content"]]}


def _shifted(lists: Body, body: Body) -> Body:
    content = lists["content"]
    moved = [item["top_logprobs"] for item in content[1:] + content[:1]]
    return {"content": [{**item, "top_logprobs": top} for item, top in zip(content, moved, strict=True)]}


def _second_twice(choice: Body, body: Body) -> Body:
    entries = choice.get("prompt_logprobs") or []
    return {"prompt_logprobs": [entries[1], *entries[1:]]} if len(entries) > 1 else {}


def _cached(answer: Body, body: Body) -> Body:
    return {"usage": {**answer["usage"], "prompt_tokens_details": {"cached_tokens": 10**6}}}


def _other_ids(choice: Body, body: Body) -> Body:
    return {"token_ids": [token + 1 for token in choice["token_ids"]]} if choice.get("token_ids") else {}


def _turned(presence: Json, frequency: Json) -> tuple[Json, Json]:
    return _negated(presence), _negated(frequency)


HALF_HEEDED = (
    *(
        _reads("a negative bias is ignored", f"{d}/effects/negative_bias", "logit_bias", _positive)
        for d in ("nim", "atoma")
    ),
    *(
        _penalties("penalties have the wrong sign", f"{dialect}/effects/{name}", _turned)
        for dialect in ("nim", "acs", "mindie")
        for name in PENALTIES
    ),
    *(
        _penalties("two penalties are mixed up", f"{dialect}/effects/penalties", lambda one, other: (other, one))
        for dialect in ("nim", "atoma", "acs", "mindie")
    ),
    *(
        _reads(
            "a penalty is inverted", f"{d}/effects/repetition_penalty", "repetition_penalty", lambda value: 1 / value
        )
        for d in ("nim", "acs", "mindie")
    ),
    _ignores_if("seed 0 is none", f"{N}/seed", "seed", lambda seed: seed == 0),
    Mutant(
        "several choices have no seed",
        f"{N}/seed_n",
        lambda sent: sent.having(seed=...) if (sent.json.get("n") or 1) > 1 else sent,
    ),
    _ignores_if("a single stop text is ignored", f"{N}/stop_text", "stop", lambda stop: isinstance(stop, str)),
    _reads("two stop texts are enough", f"{N}/stop", "stop", lambda stop: stop[:2] if isinstance(stop, list) else stop),
    _reads("the first choice is made", f"{N}/guided_choice", "guided_choice", lambda choices: choices[:1]),
    _reads("the first list is the only prompt", f"{N}/token_lists", "prompt", _first_list),
    _reads("tokens of a prompt are not read", f"{N}/read_tokens", "prompt", _same_tokens),
    Mutant(
        "prompts of tokens are not repeated",
        f"{N}/read_tokens",
        lambda sent: sent.having(echo=...) if _is_tokens(sent.json.get("prompt")) else sent,
    ),
    Mutant("a bias holds for the next call", f"{N}/nothing_stays", _Leak().request),
    _without("five tokens come by default", f"{N}/max_tokens_default", "max_tokens", max_tokens=5),
    _without("five tokens come by default", "atoma/effects/max_tokens_default", "max_tokens", max_tokens=5),
    _without("nothing is left to chance by default", f"{N}/unseeded", "temperature", temperature=0),
    _without("all calls have one seed", "mindie/effects/unseeded", "seed", seed=7),
    *(
        _ignores_if(
            "a JSON object is no form",
            f"{d}/effects/json_object",
            "response_format",
            lambda form: "json_schema" not in form,
        )
        for d in ("nim", "mindie")
    ),
    _reads("nobody hears the system", "mindie/effects/system", "messages", _no_system),
    _reads("the first text is the only one", "mindie/effects/text_parts", "messages", _first_text),
    _lists("an echoed prompt has no log probabilities", f"{N}/echoed_logprobs", _behind_prompt),
    _lists("all offsets are 0", f"{N}/text_offset", lambda lists, _: {"text_offset": [0 for _ in lists["tokens"]]}),
    _lists(
        "offsets count tokens", f"{N}/text_offset", lambda lists, _: {"text_offset": [*range(len(lists["tokens"]))]}
    ),
    _lists("offsets count bytes", f"{N}/text_offset", _in_bytes),
    _each("logprobs 0 is none", f"{N}/logprobs_0", lambda _, body: {} if body.get("logprobs") else {"logprobs": None}),
    _each("the first choice alone is stopped", f"{N}/stop_each", _first_alone("text", _unstopped)),
    *(
        _each(
            "one choice has log probabilities", f"{d}/effects/each_logprobs", _first_alone("logprobs", lambda *_: None)
        )
        for d in ("nim", "mindie")
    ),
    _each("nobody says which text stopped it", f"{N}/stop", lambda *_: {"stop_reason": None}),
    _each("the first token has a log probability", f"{N}/prompt_logprobs", _second_twice),
    _each("ids are those of other tokens", "acs/effects/return_token_ids", _other_ids),
    _prompt_counts("the first prompt is counted", f"{N}/counted_once", lambda _, body: len(body["prompt"][0])),
    *(
        _prompt_counts(
            "prompts count for each choice",
            f"{d}/effects/counted_once",
            lambda count, body: count * (body.get("n") or 1),
        )
        for d in ("nim", "mindie")
    ),
    _whole("more tokens are cached than there are", f"{N}/usage_sum", _cached),
    _whole("no time is told", f"{N}/created", lambda *_: {"created": 0}),
    _whole("the time is in milliseconds", f"{N}/created", lambda answer, _: {"created": answer["created"] * 1000}),
    _lists("values are made up", "mindie/effects/top_logprobs", _made_up),
    _lists("alternatives are those of the next token", "mindie/effects/top_logprobs", _shifted),
)
