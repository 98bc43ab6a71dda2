"""Names for what passes through this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# JSON as it comes out of a parser. A precise recursive type would need a cast at every step of a walk.
Json = Any
Document = Mapping[str, Any]
"""A bundled OpenAPI document: all references point into itself."""
Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
