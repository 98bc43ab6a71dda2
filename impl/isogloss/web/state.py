"""What is known about one request while it runs through the layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isogloss_spec import Fault

from isogloss.web.routing import Route

KEY = "isogloss.request"
"""Where a scope holds the state."""


@dataclass(slots=True)
class RequestState:
    """Made once per request by the outermost layer; each layer adds what it finds out."""

    request_id: str
    """The caller's `X-Request-Id` if it is well-formed, else `own_id`."""
    path: str
    """As sent: what is percent-encoded stays so, for a proxy's rules about paths must hold here too."""
    headers: dict[bytes, bytes]
    """As received, names in lower case; the last of several equal names counts."""
    target: Route | Fault
    """Where the request leads, or why nowhere. A Route beyond the layer that checks it."""
    own_id: str
    """32 hex digits made here, whatever the caller sent."""
    key_name: str | None = None
    """A name for the caller's key; never the key."""
    status: int = 0
    """Of the answer; 0 until one has begun."""
    fault: str | None = None
    """The name of the fault that was answered."""

    @property
    def route(self) -> Route:
        """Where the request leads. Raises the fault if nowhere."""
        if isinstance(self.target, Fault):
            raise self.target
        return self.target


def state_of(scope: Any) -> RequestState:
    """The state of a request that is inside the layers."""
    state: RequestState = scope[KEY]
    return state
