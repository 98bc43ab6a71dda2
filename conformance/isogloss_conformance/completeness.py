"""How much of the ledger a run has looked at. Computed, never claimed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from isogloss_spec.ledger import Entry

from isogloss_conformance.results import Result, Status


@dataclass(frozen=True, slots=True)
class Completeness:
    """Entries of a ledger, by what became of them."""

    entries: int
    proved: int
    """Looked at, with a verdict: they hold, or they do not."""
    unprovable: int
    """Not decidable on this server, each with its reason in the report."""
    unsupported: int
    """The accepted side needs a feature that the server properly refused."""
    disabled: int
    errors: int
    missing: tuple[str, ...]
    """Ids that no result speaks of."""

    @property
    def complete(self) -> bool:
        """Whether every entry has its verdict or its reason."""
        return not self.missing and not self.errors


def completeness(entries: Iterable[Entry], results: Iterable[Result]) -> Completeness:
    """What became of each entry."""
    status = {result.id: result.status for result in results}
    ids = [entry.id for entry in entries]
    met = [status[entry_id] for entry_id in ids if entry_id in status]
    return Completeness(
        entries=len(ids),
        proved=met.count(Status.PASS) + met.count(Status.FAIL),
        unprovable=met.count(Status.SKIP),
        unsupported=met.count(Status.UNSUPPORTED),
        disabled=met.count(Status.DISABLED),
        errors=met.count(Status.ERROR),
        missing=tuple(entry_id for entry_id in ids if entry_id not in status),
    )
