"""What an accepted field must do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from isogloss_conformance.effects.caller import Caller, NoReply
from isogloss_conformance.results import Outcome, Status

Json = Any
SEEDS = range(5)


@dataclass(frozen=True, slots=True)
class Effect:
    """What fields must do. `look` says in words what they fail to do, or None. It may raise NoReply."""

    name: str
    sentence: str
    fields: tuple[str, ...]
    """All must be known to the dialect."""
    look: Callable[[Caller], str | None]


def unequal(what: str, got: Json, wanted: Json) -> str | None:
    """In words that something is not as it should be; None if it is."""
    return None if got == wanted else f"{what}: {got!r}, not {wanted!r}"


def rising(sizes: Sequence[int], what: str) -> str | None:
    """In words that prompts do not grow from one to the next; None if they do."""
    rises = all(small < large for small, large in pairwise(sizes))
    return None if rises else f"{what} {list(sizes)} tokens"


def unprovable(reason: str) -> NoReply:
    """To be raised where a server cannot show what a field does."""
    return NoReply(Outcome(Status.SKIP, got=f"unprovable: {reason}"))


def words(call: Caller, tokens: int = 8) -> str:
    """What the model says anyway. Raises NoReply if it says nothing, which proves nothing."""
    said = call(max_tokens=tokens).text
    if not said:
        raise unprovable("the model says nothing")
    return said
