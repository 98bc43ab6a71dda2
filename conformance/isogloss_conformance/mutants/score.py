"""Runs the checks that are meant for each mutant, and says which mutants lived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import isogloss_api

from isogloss_conformance.client import Client
from isogloss_conformance.discover import discover
from isogloss_conformance.mutants import MUTANTS
from isogloss_conformance.mutants.proxy import proxied
from isogloss_conformance.mutants.wire import Mutant
from isogloss_conformance.results import Result, Status
from isogloss_conformance.runner import STEPS, MakeStep, Runner
from isogloss_conformance.session import Facts, Options, Session

LEDGER_STEPS = frozenset({"rules", "faults"})
"""Steps whose ids are those of the ledger."""
RIGHT = "the right server"
FLOOD = 40
"""Calls at once. The server that mutants stand in front of refuses some, both for the engine's sake and the key's."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One mutant, or the right server, and what the suite said of it."""

    name: str
    killer: str
    failed: tuple[Result, ...]
    looked: int
    """Number of checks that were made."""

    @property
    def well(self) -> bool:
        """Whether the suite was right: a mutant is noticed, the right server is not."""
        return self.looked > 0 and bool(self.failed) is not (self.name == RIGHT)


@dataclass(frozen=True, slots=True)
class Upstream:
    """The right server: our own, with the scripted engine, behind a key."""

    base_url: str
    key: str


def trials(upstream: Upstream, mutants: Iterable[Mutant] = MUTANTS) -> Iterator[Trial]:
    """First the right server behind the same proxy, with all the checks; then each mutant with those meant for it."""
    chosen = list(mutants)
    facts = {dialect: _facts(upstream, dialect) for dialect in dict.fromkeys(mutant.dialect for mutant in chosen)}
    for dialect, known in facts.items():
        killers = tuple(dict.fromkeys(mutant.killer for mutant in chosen if mutant.dialect == dialect))
        yield _trial(Mutant(RIGHT, f"{dialect}/"), upstream, known, killers)
    for mutant in chosen:
        yield _trial(mutant, upstream, facts[mutant.dialect], (mutant.killer,))


def _facts(upstream: Upstream, dialect: str) -> Facts:
    client = Client(f"{upstream.base_url}/{dialect}", key=upstream.key)
    try:
        return discover(isogloss_api.document(dialect), client)
    finally:
        client.close()


def _trial(mutant: Mutant, upstream: Upstream, facts: Facts, killers: tuple[str, ...]) -> Trial:
    document = isogloss_api.document(mutant.dialect)
    with proxied(mutant, upstream.base_url, upstream.key) as url:
        client = Client(f"{url}/{mutant.dialect}", key=upstream.key, timeout=20)
        try:
            session = Session(document, client, facts, Options(only=killers, flood=FLOOD))
            results = list(Runner(session, _steps(killers)).run())
        finally:
            client.close()
    looked = [result for result in results if result.status is not Status.DISABLED]
    wrong = {Status.FAIL, Status.ERROR} if mutant.name == RIGHT else {Status.FAIL}  # a lost answer proves nothing
    failed = tuple(result for result in looked if result.status in wrong)
    return Trial(mutant.name, mutant.killer, failed, len(looked))


def _steps(killers: tuple[str, ...]) -> list[MakeStep]:
    """The steps that ids belong to: named in the id, or those of the ledger."""
    named = {killer.split("/")[1] for killer in killers}
    own = {step.name for step in STEPS} - LEDGER_STEPS
    return [step for step in STEPS if step.name in named or (step.name in LEDGER_STEPS and named - own)]
