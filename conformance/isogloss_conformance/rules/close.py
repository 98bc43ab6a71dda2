"""Bodies that are as near to a bound of real numbers as a few digits allow, on both sides of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from isogloss_spec.faults import Fault
from isogloss_spec.json_types import types_of
from isogloss_spec.judge import Judge
from isogloss_spec.ledger import Step
from isogloss_spec.pairs import Pair
from isogloss_spec.samples import near

Json = Any
INWARDS: Mapping[str, int] = {"minimum": 1, "exclusiveMinimum": 1, "maximum": -1, "exclusiveMaximum": -1}
"""Keywords of bounds, and the direction in which accepted values lie."""


def closer(pair: Pair, document: Mapping[str, Json], judge: Judge) -> Pair:
    """The pair of a bound with bodies just inside and just beyond it; any other pair as it is."""
    entry = pair.entry
    if entry.keyword not in INWARDS or "number" not in types_of(document, entry.steps[-1].schema):
        return pair
    limit, inwards = entry.steps[-1].schema[entry.keyword], INWARDS[entry.keyword]
    edge, inside, beyond = (
        _placed(pair.accept[0], entry.steps, value) for value in (limit, near(limit, inwards), near(limit, -inwards))
    )
    exclusive = entry.keyword.startswith("exclusive")
    accept, reject = ((inside,), (edge, beyond)) if exclusive else ((edge, inside), (beyond,))
    return replace(pair, accept=_alike(judge, accept, pair.accept), reject=_alike(judge, reject, pair.reject))


def _placed(body: Json, steps: Sequence[Step], value: Json) -> Json:
    """The body with another value at the end of the steps: in the last item and the first member on the way."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if step.kind == "branch":
        return _placed(body, rest, value)
    if step.kind == "items":
        return [*body[:-1], _placed(body[-1], rest, value)]
    name = step.name if step.kind == "member" else next(iter(body))
    return {**body, name: _placed(body[name], rest, value)}


def _alike(judge: Judge, made: tuple[Json, ...], known: tuple[Json, ...]) -> tuple[Json, ...]:
    """The bodies that were made of which the judge says the same as of known ones; the latter if there are none."""
    verdict = _verdict(judge, known[0])
    return tuple(body for body in made if _verdict(judge, body) == verdict) or known


def _verdict(judge: Judge, body: Json) -> tuple[str, str | None, str | None, str | None] | None:
    try:
        judge.check_body(body)
    except Fault as fault:
        return fault.name, fault.param, fault.keyword, fault.entry
    return None
