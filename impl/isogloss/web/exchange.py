"""What a route stub gets to see of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isogloss_api.runtime import Call, Context
from isogloss_spec import Judge, Verdict

from isogloss.web.state import RequestState

_HINT = b"x-isogloss-"


class JudgedExchange:
    """A request whose body the judge let pass."""

    __slots__ = ("_call", "_judge", "_verdict")

    def __init__(self, judge: Judge, verdict: Verdict, state: RequestState) -> None:
        self._judge = judge
        self._verdict = verdict
        self._call = _call(state, verdict.eff)

    @property
    def body(self) -> Mapping[str, Any]:
        """The body as sent."""
        return self._verdict.body

    @property
    def call(self) -> Call[Any]:
        """What goes with it."""
        return self._call

    def admit(self, context: Context) -> None:
        """Run the rules of stage `prompt`. Raises their faults."""
        self._judge.check_prompt(self._verdict, context)


class BareExchange:
    """A request of an operation without a body."""

    __slots__ = ("_call",)

    def __init__(self, state: RequestState) -> None:
        self._call = _call(state, {})

    @property
    def body(self) -> Mapping[str, Any]:
        """Always empty."""
        return {}

    @property
    def call(self) -> Call[Any]:
        """What is known about the call."""
        return self._call

    def admit(self, context: Context) -> None:
        """There are no rules without a body."""


def _call(state: RequestState, eff: Mapping[str, Any]) -> Call[Any]:
    hints = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in state.headers.items()
        if name.startswith(_HINT)
    }
    return Call(state.request_id, eff, state.key_name, hints)
