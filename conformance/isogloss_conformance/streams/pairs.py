"""One request, asked as a stream and without one: what a field does, it must do in both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.results import Outcome, Status, heaviest
from isogloss_conformance.session import Session
from isogloss_conformance.streams.pair_laws import (
    PairLaw,
    same_choices,
    same_end,
    same_logprobs,
    same_text,
    usage_at_end,
)
from isogloss_conformance.streams.streamer import Streamer

Json = Any
FEW = 8
SAMPLED = {"temperature": 1}
TWO = {**SAMPLED, "n": 2, "seed": 5}
PROMPTS = ["Once upon a time", "1, 2, 3, 4,"]
SHORT = {"tokens": ["a", "b"]}
"""A script that ends by itself after two tokens."""
LETTERS = {"tokens": ["a", "b", "c", "d"]}
RIVALS = {"logit_bias": {str(token): 100 for token in range(33, 97)}, "max_tokens": 2 * FEW}
"""Tokens among which a model is at a loss, so that penalties soon decide."""
LONG = {"max_tokens": 4 * FEW}
"""Room in which words come again, where no bias can hold a model to few."""
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}


@dataclass(frozen=True, slots=True)
class Sample:
    """A request with a field that must act in a stream as it does without one."""

    name: str
    fields: Mapping[str, Json]
    script: Json = None
    """What an engine is told to say; on others the sample shows nothing."""
    law: PairLaw = same_text
    repetitive: bool = False
    """Whether the field acts on what was said already."""


SAMPLES = (
    Sample("seed", {**SAMPLED, "seed": 5}),
    Sample("top_k", {**SAMPLED, "top_k": 1}),
    Sample("top_p", {**SAMPLED, "top_p": 1e-5}),
    Sample("min_p", {**SAMPLED, "min_p": 1}),
    Sample("logit_bias", {"logit_bias": {"65": 100}}),
    Sample("presence_penalty", {"presence_penalty": 2}, repetitive=True),
    Sample("frequency_penalty", {"frequency_penalty": 2}, repetitive=True),
    Sample("repetition_penalty", {"repetition_penalty": 2.0, "max_tokens": 3 * FEW}),
    Sample("min_tokens", {"min_tokens": FEW}, SHORT),
    Sample("ignore_eos", {"ignore_eos": True}, SHORT),
    Sample("stop_token_ids", {"stop_token_ids": [ord("c")]}, LETTERS),
    Sample("guided_choice", {"guided_choice": ["yes", "no"]}),
    Sample("response_format", {"response_format": FORM}),
    Sample("token_ids", {"return_token_ids": True}),
    Sample("token_names", {"return_tokens_as_token_ids": True, "logprobs": 1}, law=same_logprobs),
    Sample("choices", TWO, law=same_choices(2)),
    Sample("prompts", {**TWO, "prompt": PROMPTS}, law=same_choices(2, len(PROMPTS))),
)
"""Each is asked where the dialect knows all its fields."""


class StreamPairs:
    """Asks for the same both ways and holds laws against the two answers."""

    def __init__(self, session: Session, streamer: Streamer) -> None:
        self._session = session
        self._streamer = streamer
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)

    def laws(self) -> Iterator[tuple[str, str, Callable[[], Outcome]]]:
        """Names, sentences and looks."""
        yield "end", "A choice ends for the reason that it has in the same call without a stream.", self._ends
        if "stream_options" not in self._streamer.fields and self._streamer.tells_usage:
            yield "usage", "The last chunk of each choice has its usage, and that is right.", self._usage
        for sample in SAMPLES:
            if sample.fields.keys() <= self._streamer.fields.keys():
                sentence = f"{sample.name} does in a stream what it does without one."
                yield f"same/{sample.name}", sentence, partial(self._same, sample)

    def held(self, law: PairLaw, script: Json = None, *, steady: PairLaw | None = None, **fields: Json) -> Outcome:
        """Hold a law against a stream and the same call without one, which must be good by itself.

        Nothing is proved where the law, or `steady` in its place, does not hold between two calls without a stream.
        """
        plain = self._streamer.plain(script, **fields)
        answer = self._session.client.send(plain)
        outcome = self._exchange.judged(plain, answer, self._session.main, self._forecaster.of(json.loads(plain.body)))
        if outcome.status is not Status.PASS:
            return outcome
        request = self._streamer.request(script, **fields)
        streamed = self._streamer.of_chunks(request, lambda chunks: law(chunks, answer.json))
        if streamed.status is Status.FAIL:
            again = self._session.client.send(plain).json
            if isinstance(again, dict) and (steady or law)([again], answer.json) is not None:
                return _unprovable("two calls without a stream differ, too")
        return streamed

    def _same(self, sample: Sample) -> Outcome:
        """A sample, asked both ways."""
        if sample.script is not None and not self._session.facts.scripted:
            return _unprovable("it takes an engine that follows scripts")
        room: Mapping[str, Json] = {"max_tokens": FEW}
        if sample.repetitive:
            room = RIVALS if "logit_bias" in self._streamer.fields else LONG
        return self.held(sample.law, sample.script, **{**room, **sample.fields})

    def _ends(self) -> Outcome:
        """A text that is cut; and one that ends by itself, where that can be had."""
        scripts = [None, SHORT] if self._session.facts.scripted else [None]
        return heaviest(self.held(same_end, script, max_tokens=FEW) for script in scripts)

    def _usage(self) -> Outcome:
        calls: tuple[Mapping[str, Json], ...] = ({}, TWO)
        return heaviest(self.held(usage_at_end, steady=same_end, **{"max_tokens": FEW, **call}) for call in calls)


def _unprovable(reason: str) -> Outcome:
    return Outcome(Status.SKIP, got=f"unprovable: {reason}")
