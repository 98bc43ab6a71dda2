"""Writing the grammar of an answer, rule by rule, as a composite guide."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from isogloss.engine.api import Guide, GuideError
from isogloss.engine.chat.calls import Function
from isogloss.engine.chat.guiding.parameters import arguments_schema, schema_text

_ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_MOST_WRITTEN = 4 * 1024 * 1024
"""Characters of all schemas, equal ones too: each argument may carry the definitions of its whole function along."""


class Builder:
    """Collects rules; what its methods return are expressions for other rules."""

    free = "FREE"
    """Any text."""

    def __init__(self) -> None:
        self._rules: list[str] = ["FREE: /(?s:.*)/"]
        self._parts: dict[Guide, int] = {}
        self._markers: dict[str, int] = {}
        self._written = 0

    def text(self, text: str) -> str:
        """Exactly this text."""
        quoted = json.dumps(text, ensure_ascii=False)
        return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)

    def rule(self, expression: str) -> str:
        """A rule of its own."""
        return self._named("rule", expression)

    def terminal(self, expression: str) -> str:
        """A pattern of its own, of texts and regular expressions alone."""
        return self._named("TERMINAL", expression)

    def part(self, guide: Guide) -> str:
        """What follows another guide."""
        return f"@part{self._parts.setdefault(guide, len(self._parts))}"

    def arguments(self, function: Function, strict_only: bool) -> str:
        """The arguments of a function as JSON: by its schema, or any object."""
        if strict_only and not function.strict:
            return self.part(Guide("json_object"))
        return self.schema(arguments_schema(function))

    def schema(self, schema: object) -> str:
        """JSON by a schema. Raises GuideError for one that cannot be written down, or if all are too large."""
        text = schema_text(schema)
        self._written += len(text)
        if self._written > _MOST_WRITTEN:
            raise GuideError("too_complex")
        return self.part(Guide("json_schema", text))

    def marker(self, marker: str) -> str:
        """A marker, which may be a special token."""
        return f"@marker{self._markers.setdefault(marker, len(self._markers))}"

    def until(self, marker: str) -> str:
        """Any text up to the first such marker, and the marker."""
        return f"@until{self._markers.setdefault(marker, len(self._markers))}"

    def guide(self, start: str, *, yields: bool = False) -> Guide:
        """The guide whose text is this expression."""
        text = "\n".join([f"start: {start}", *self._rules])
        return Guide("composite", text, choices=tuple(self._markers), parts=tuple(self._parts), yields=yields)

    def _named(self, prefix: str, expression: str) -> str:
        name = f"{prefix}{len(self._rules)}"
        self._rules.append(f"{name}: {expression}")
        return name


def repeated(expression: str, between: str, at_least: int, at_most: int | None, *, blank: str = "") -> str:
    """So many in a row, at least one, with something between each two, and in front of that a blank.

    The blank may follow the last one too: a model that writes it has not said yet that another one comes.
    """
    if at_most == 1:
        return expression
    more = "" if at_most is None else at_most - 1
    row = f"{expression} ({blank} {between} {expression}){{{max(at_least, 1) - 1},{more}}}"
    return f"{row} {blank}?" if blank else row


def one_of(expressions: Sequence[str]) -> str:
    """One of several."""
    return f"({' | '.join(expressions)})"
