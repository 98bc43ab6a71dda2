"""JSON Schemas of requests: are they any?"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs

from isogloss.engine.api import GuideError

_DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
}
_NEWEST = "https://json-schema.org/draft/2020-12/schema"


def read_schema(text: str) -> dict[str, Any]:
    """The schema in a text, valid by its draft's meta-schema. Raises GuideError, and RecursionError for a deep one."""
    try:
        schema = json.loads(text, parse_constant=_no_constant)
        if not isinstance(schema, dict):
            raise GuideError("invalid")
        jsonschema_rs.meta.validate({**schema, "$schema": _draft(schema)})
    except ValueError as error:
        # Covers ValidationError and what is not JSON. The text is the request's, so it is not passed on.
        raise GuideError("invalid") from error
    return schema


def _draft(schema: dict[str, Any]) -> str:
    """The draft that a schema names. Any other name would be looked up on the network, so it is refused."""
    name = schema.get("$schema", _NEWEST)
    if not isinstance(name, str) or name.removesuffix("#") not in _DRAFTS:
        raise GuideError("unsupported")
    return name


def _no_constant(name: str) -> object:
    raise ValueError(name)
