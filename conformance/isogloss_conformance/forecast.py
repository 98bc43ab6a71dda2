"""What the document allows as the answer to one body, as far as it can be known from outside.

Rules of stage `prompt` depend on figures that only the server has: tokens of the prompt, the vocabulary. Each rule
is evaluated with the kindest and with the harshest figures that are possible. One that holds with the harshest
cannot be a reason to refuse; one that fails with the kindest must be.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isogloss_spec.context import Context
from isogloss_spec.faults import ErrorAnswer, Fault, param_of
from isogloss_spec.features import Features
from isogloss_spec.judge import Judge, Verdict
from isogloss_spec.ledger import Entry
from isogloss_spec.rules import Rule, RuleError

from isogloss_conformance.client import Answer
from isogloss_conformance.media import Media
from isogloss_conformance.oracle import GUIDE_FAULT, Expected, difference
from isogloss_conformance.session import Session

Json = Any
LARGEST = 2**31 - 1
SMALLEST_VOCABULARY = 256
LONGEST_TOKEN = 128
"""Characters that one token stands for at most."""
TEMPLATE = 256
"""Tokens that a chat template or the tokenizer adds at most."""
GUIDING = frozenset({"guided", "nvext"})
"""Features whose fields may hold a guide."""
MAX_ITER_TIMES = 512
"""MindIE's default for the tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """All answers that the document allows for one body."""

    success: bool
    faults: tuple[Fault, ...] = ()
    """Faults that may be answered, in the order in which they are checked."""

    @property
    def lacks_feature(self) -> bool:
        """Whether the only allowed answer says that the server lacks a feature."""
        return not self.success and all(fault.name == "unsupported_feature" for fault in self.faults)


class Forecaster:
    """Forecasts for the bodies of the main operation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        facts = session.facts
        self.judge = Judge(session.document, session.main.id, models=[facts.model], features=facts.features)
        self._features = Features(session.document, session.request_schema)
        self._guide_fault = next((name for name in session.document["x-faults"] if name.endswith(GUIDE_FAULT)), None)
        self._media = Media(session.document)
        self._prompt_rules = [rule for rule in self.judge.rules if rule.stage == "prompt"]

    def of(self, body: Json) -> Forecast:
        """What may be answered to a body."""
        try:
            verdict = self.judge.check_body(body)
        except Fault as fault:
            return Forecast(False, (fault,))
        return self._of_prompt(body, verdict)

    def breaks_alone(self, rule_id: str, body: Json) -> bool:
        """Whether a body breaks one rule of stage `prompt` on this server, and can be refused for nothing else."""
        try:
            found = self.of(body)
        except RuleError:  # the body lacks what a rule reads
            return False
        return not found.success and [fault.entry for fault in found.faults] == [rule_id]

    def broken(self, rule_id: str, body: Json) -> Forecast:
        """What must be answered to a body that breaks a rule of stage `prompt` and no other."""
        try:
            self.judge.check_body(body)
        except Fault as fault:
            return Forecast(False, (fault,))
        rule = next(rule for rule in self._prompt_rules if rule.id == rule_id)
        return Forecast(False, (_fault(rule),))

    def fits(self, rule_id: str, body: Json, tokens: int) -> bool | None:
        """Whether a rule of stage `prompt` holds for a body whose prompt has so many tokens; None if it is refused."""
        try:
            verdict = self.judge.check_body(body)
        except Fault:
            return None
        rule = next(rule for rule in self._prompt_rules if rule.id == rule_id)
        return _holds(rule, self._variables(verdict, {**self._contexts(body)[0], **_tokens([tokens])}))

    def _of_prompt(self, body: Json, verdict: Verdict) -> Forecast:
        kind, harsh = self._contexts(body)
        possible: list[Fault] = []
        for rule in self._prompt_rules:
            if _holds(rule, self._variables(verdict, harsh)):
                continue
            possible.append(_fault(rule))
            if not _holds(rule, self._variables(verdict, kind)):
                return Forecast(False, tuple(possible))
        return Forecast(True, (*possible, *self._guide_faults(body), *self._media.faults(self._features.wanted(body))))

    def meant(self, entry: Entry, body: Json) -> Forecast:
        """What must be answered to a body that breaks one entry and no other."""
        if entry.rule is not None and entry.rule["stage"] == "prompt":
            return self.broken(entry.id, body)
        found = self.of(body)
        if entry.kind == "media" and found.success:
            return Forecast(False, tuple(self._media.faults(self._features.wanted(body))))
        return found

    def _guide_faults(self, body: Mapping[str, Json]) -> Iterator[Fault]:
        """What the engine may say of the guides of a body, for each field that may hold one."""
        if self._guide_fault is None:
            return
        for feature, path in self._features.wanted(body):
            if feature in GUIDING:
                below = body.get(str(path[0])) if len(path) == 1 else None
                inner = [(*path, name) for name in below] if isinstance(below, dict) else []
                for place in (path, *inner):
                    yield Fault(self._guide_fault, param=param_of(place), path=place)

    def _variables(self, verdict: Verdict, context: Context) -> Mapping[str, Mapping[str, Json]]:
        filled = Verdict(verdict.body, dict(verdict.eff))
        with contextlib.suppress(Fault):  # only for the defaults that depend on the prompt; rules are asked one by one
            self.judge.check_prompt(filled, context)
        return {"self": filled.body, "eff": filled.eff, "ctx": context}

    def _contexts(self, body: Mapping[str, Json]) -> tuple[Context, Context]:
        """The kindest and the harshest figures."""
        prompts = list(_prompts(body))
        length = self._session.facts.context_length
        told = 4 * len(json.dumps(body["tools"])) if body.get("tools") else 0  # a template may write functions out
        flaw = 0 if self._is_plain(body.get("messages")) else 1
        kind: Context = {**self._exact(body, length or LARGEST), **_tokens([_fewest(prompt) for prompt in prompts])}
        harsh: Context = {
            **self._exact(body, length or SMALLEST_VOCABULARY),
            **_tokens([_most(prompt) + told for prompt in prompts]),
            "vocab_size": SMALLEST_VOCABULARY,
            "layers": 1,
            "hidden_size": 1,
            "empty_messages": flaw,
            "tool_messages_without_id": flaw,
            "unreadable_parts": flaw,
        }
        return kind, harsh

    def _is_plain(self, messages: Json) -> bool:
        """Whether there is nothing in messages that a rule could object to: texts and media of the user."""
        return all(
            message.keys() == {"role", "content"}
            and message["role"] == "user"
            and (self._media.is_content(message["content"]) or _is_text(message["content"]))
            for message in messages or ()
        )

    def _exact(self, body: Mapping[str, Json], length: int) -> Context:
        """What can be counted from outside, and the kindest of what cannot."""
        parts, address_chars = self._media.figures(body.get("messages"))
        return {
            "max_token_id": max(_token_ids(body.get("prompt")), default=-1),
            "context_length": length,
            "vocab_size": LARGEST,
            "layers": LARGEST,
            "hidden_size": LARGEST,
            "depth": _depth(body),
            "messages_chars": _chars(body.get("messages")),
            "empty_messages": 0,
            "tool_messages_without_id": 0,
            "unreadable_parts": 0,
            "media_parts": parts,
            "media_address_chars": address_chars,
            "stop_chars": _chars(body.get("stop")),
            "server": {**server_limits(length), **self._session.options.settings},
        }


def _tokens(counts: Sequence[int]) -> Context:
    return {
        "prompts": len(counts),
        "prompt_tokens_min": min(counts),
        "prompt_tokens_max": max(counts),
        "prompt_tokens_sum": sum(counts),
    }


def server_limits(length: int) -> dict[str, int]:
    """MindIE's limits where nothing else is said, and its modes, off."""
    modes = dict.fromkeys(("deepseek", "disaggregated", "plugins"), 0)
    limits = {"maxInputTokenLen": length, "maxSeqLen": length, "maxIterTimes": MAX_ITER_TIMES}
    return {**limits, "topK": -1, **modes}


def _holds(rule: Rule, variables: Mapping[str, Mapping[str, Json]]) -> bool:
    return rule.expression.value(variables) is True


def _fault(rule: Rule) -> Fault:
    path = (rule.param,) if rule.param else ()
    values = {"message": rule.entry["message"]}
    return Fault(
        rule.fault, param=rule.param, path=path, keyword=rule.id.rsplit("/", 1)[1], entry=rule.id, values=values
    )


def _is_text(content: Json) -> bool:
    return isinstance(content, str) and bool(content)


def _prompts(body: Mapping[str, Json]) -> Iterator[Json]:
    """Each prompt: a text, a list of token ids or a list of messages."""
    prompt = body.get("prompt", body.get("messages"))
    if isinstance(prompt, list) and "prompt" in body and prompt and isinstance(prompt[0], str | list):
        yield from prompt
    else:
        yield prompt


def _fewest(prompt: Json) -> int:
    if _is_tokens(prompt):
        return len(prompt)
    return max(1 if _chars(prompt) else 0, _chars(prompt) // LONGEST_TOKEN)


def _most(prompt: Json) -> int:
    if _is_tokens(prompt):
        return len(prompt)
    if isinstance(prompt, str):
        return len(prompt.encode("utf-8", "replace")) + 2
    return 4 * _chars(prompt) + TEMPLATE * (1 + len(prompt or ()))


def _is_tokens(prompt: Json) -> bool:
    return isinstance(prompt, list) and bool(prompt) and isinstance(prompt[0], int | float)


def _token_ids(prompt: Json) -> Iterator[int]:
    if _is_tokens(prompt):
        yield from map(int, prompt)
    elif isinstance(prompt, list):
        for inner in prompt:
            yield from _token_ids(inner)


def _chars(value: Json) -> int:
    """Characters of all texts below a value."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_chars, inner))


def _depth(value: Json) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


def departure(session: Session, forecast: Forecast, answer: Answer) -> str | None:
    """How an answer departs from what is allowed, in words; None if it does not."""
    if answer.status == 200 and forecast.success:
        return None
    reasons = [_departs(session.faults.render(fault, request_hex="0" * 32), fault, answer) for fault in forecast.faults]
    if None in reasons:
        return None
    if forecast.success:
        return f"the document accepts this body, the server answered {answer.described()}"
    return reasons[-1]


def _departs(wanted: ErrorAnswer, fault: Fault, answer: Answer) -> str | None:
    wrong = difference(Expected(fault, wanted), answer.status, answer.json)
    if wrong is not None:
        return f"{wrong}: {answer.described()}"
    have = {name.lower() for name in answer.headers}
    lacking = [name for name in wanted.headers if name.lower() not in have]
    return f"the answer lacks the header {lacking[0]}" if lacking else None


def described(session: Session, forecast: Forecast) -> str:
    """The allowed answers in one line."""
    parts = ["200"] if forecast.success else []
    for fault in forecast.faults:
        name = fault.entry or fault.name
        parts.append(f"{session.faults.status(fault.name)} ({name}, param {fault.param})")
    return " or ".join(parts)
