"""Holds answers against the response schemas of the document, with openapi-core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openapi_core import OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError

from isogloss_conformance.client import Answer

Json = Any
_HOST = "http://localhost"
LARGEST_VALIDATED = 262_144
"""Bytes of an answer that are worth a validator in Python."""


class ResponseValidator:
    """Validates JSON answers; streams are the matter of the streams step."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._openapi = OpenAPI.from_dict({**document, "servers": [{"url": "/"}]})

    def fault(self, method: str, path: str, answer: Answer) -> str | None:
        """What is wrong with an answer of one operation, in words; None if nothing is.

        An undeclared status is wrong, and so is an undeclared content type.
        """
        content_type = answer.headers.get("content-type", "")
        if content_type.startswith("text/event-stream") or len(answer.content) > LARGEST_VALIDATED:
            return None
        try:
            self._openapi.validate_response(_Request(method.lower(), path), _Response(answer))
        except OpenAPIError as error:
            return f"the answer is not what the document declares: {_reason(error)}"
        return None


def _reason(error: BaseException) -> str:
    """The innermost reason, in one line."""
    details = getattr(error.__cause__, "schema_errors", None)
    if details:
        first = next(iter(details))
        return f"{'/'.join(map(str, first.absolute_path))}: {first.message:.200}"
    return f"{error.__cause__ or error}"[:300]


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
