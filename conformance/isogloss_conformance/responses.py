"""Holds answers against the response schemas of the document, with openapi-core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from openapi_core import OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError

from isogloss_conformance.client import Answer

Json = Any
_HOST = "http://localhost"
_NAMING = frozenset({"required", "additionalProperties"})
"""Keywords that are about members: which, only their messages say."""
LARGEST_VALIDATED = 262_144
"""Bytes of an answer that are worth a validator in Python."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One way in which an answer is not what the document declares."""

    kind: tuple[str, ...]
    """Equal for the same departure in another answer, whatever the values."""
    text: str


class ResponseValidator:
    """Validates JSON answers; streams are the matter of the streams step."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._openapi = OpenAPI.from_dict({**document, "servers": [{"url": "/"}]})

    def departures(self, method: str, path: str, answer: Answer) -> list[Departure]:
        """All that is wrong with an answer of one operation.

        An undeclared status is wrong, and so is an undeclared content type.
        """
        content_type = answer.headers.get("content-type", "")
        if answer.packing is not None:
            return [Departure(("packed",), f"the answer is {answer.described()}")]
        if content_type.startswith("text/event-stream"):
            return []
        if len(answer.content) > LARGEST_VALIDATED:
            return [] if isinstance(answer.json, dict) else [Departure(("large",), _worded("it is no JSON object"))]
        try:
            self._openapi.validate_response(_Request(method.lower(), path), _Response(answer))
        except OpenAPIError as error:
            return list(_departures(error))
        except (ValueError, RecursionError) as error:  # of bytes that are no UTF-8, numbers and nesting without end
            return [Departure(("unreadable",), _worded(f"it cannot be read ({type(error).__name__})"))]
        return []


def _departures(error: BaseException) -> Iterator[Departure]:
    """The innermost reasons."""
    details = list(getattr(error.__cause__, "schema_errors", None) or ())
    for detail in details:
        steps = list(detail.absolute_path)
        place = "/".join("*" if isinstance(step, int) else str(step) for step in steps)
        named = detail.message if detail.validator in _NAMING else ""
        yield Departure(
            (place, str(detail.validator), named), _worded(f"{'/'.join(map(str, steps))}: {detail.message:.200}")
        )
    if not details:
        text = _text(error.__cause__ or error)
        yield Departure((text,), _worded(text))


def _text(error: BaseException) -> str:
    try:
        return str(error)[:300]
    except UnicodeDecodeError:  # openapi-core wants to show bytes that are no UTF-8
        return type(error).__name__


def _worded(reason: str) -> str:
    return f"the answer is not what the document declares: {reason.removeprefix(': ')}"


class _Request:
    """As much of a request as finding its operation takes."""

    host_url = _HOST
    content_type = "application/json"
    body = b""

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.path = path
        self.parameters = RequestParameters()


class _Response:
    """An answer as openapi-core wants it."""

    def __init__(self, answer: Answer) -> None:
        self.data = answer.content
        self.status_code = answer.status
        self.content_type = answer.headers.get("content-type", "")
        self.headers = dict(answer.headers)
