"""Faults to answers, in the way of a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from isogloss_spec import Fault, FaultTable

_OURS = frozenset({"engine_failure", "overloaded"})
"""Faults of the server's own state; all others are the caller's."""

_RETRY_AFTER = 1
"""Seconds; a place is free again as soon as any request ends."""


class ClientGone(Exception):
    """The caller closed the connection; there is nobody to answer."""


@dataclass(frozen=True, slots=True)
class RenderedError:
    """A fault as bytes."""

    fault: str
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class ErrorRenderer:
    """Renders every fault, also those that a document has no word for.

    Such a fault becomes the document's `engine_failure` if the server is to blame, else its `rule` (a refusal in
    general), else again its `engine_failure`.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._table = FaultTable(document)

    def render(self, fault: Fault, request_id: str, own_id: str) -> RenderedError:
        """The answer to a fault, with the request's id and the 32 hex digits that the server made for it.

        `retry_after` is filled in, and `allow` among the values becomes a header.
        """
        answer = self._table.render(
            self._known(fault),
            request_id=request_id,
            request_hex=own_id,
            retry_after=fault.values.get("retry_after", _RETRY_AFTER),
        )
        headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers.items()]
        if "allow" in fault.values:
            headers.append((b"allow", str(fault.values["allow"]).encode()))
        return RenderedError(fault.name, answer.status, headers, orjson.dumps(answer.body))

    def _known(self, fault: Fault) -> Fault:
        if fault.name in self._table:
            return fault
        name = "engine_failure" if fault.name in _OURS or "rule" not in self._table else "rule"
        return Fault(name, param=fault.param, values={"message": f"The request was refused: {fault.name}."})
