"""What can be said from outside about the pictures, films and sounds of a body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from isogloss_spec.faults import Fault, param_of
from isogloss_spec.media import MediaField, media_fields
from isogloss_spec.types import Path

Json = Any


class Media:
    """The fields of a document that hold media."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._fields = media_fields(document)

    def figures(self, messages: Json) -> tuple[int, int]:
        """How many media the content with most of them has, and the characters of the longest path or address."""
        lists = [*self._lists(messages)]
        lengths = (_address_chars(field, value) for field, value in chain.from_iterable(lists))
        return max(map(len, lists), default=0), max(lengths, default=0)

    def faults(self, wanted: Iterable[tuple[str, Path]]) -> Iterator[Fault]:
        """What may be said of the files at places that need features."""
        for _, path in wanted:
            field = self._fields.get(str(path[-1]))
            if field is not None:
                yield Fault(field.fault, param=param_of(path), path=path)

    def is_content(self, content: Json) -> bool:
        """Whether a content is a list of parts that hold one text or medium each, and nothing else."""
        known = {"text", *self._fields}
        return isinstance(content, list) and all(len(part) == 1 and part.keys() <= known for part in content)

    def _lists(self, messages: Json) -> Iterator[list[tuple[MediaField, Json]]]:
        for message in messages or ():
            parts = message.get("content")
            members = chain.from_iterable(part.items() for part in parts) if isinstance(parts, list) else ()
            yield [(self._fields[name], value) for name, value in members if name in self._fields]


def _address_chars(field: MediaField, value: Json) -> int:
    text = value.get("url", "") if isinstance(value, dict) else value
    return 0 if field.is_data(text) else len(text)
