"""Bundling, and YAML that would lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from isogloss_spec.document import DocumentError, bundle, component_name, look_up, operations

MAIN = """
openapi: 3.1.0
x-messages: {$ref: 'parts.yaml#/x-messages'}
components:
  schemas:
    Own: {type: object, properties: {part: {$ref: 'parts.yaml#/components/schemas/Part'}}}
  headers:
    Linked: {$ref: 'parts.yaml#/components/headers/Linked'}
"""
PARTS = """
x-messages: {type: wrong}
components:
  schemas:
    Part: {type: array, items: {$ref: '#/components/schemas/Inner'}}
    Inner: {type: string}
    Unused: {type: string}
  headers:
    Linked: {schema: {type: string}}
"""


def bundled(folder: Path, main: str = MAIN, parts: str = PARTS) -> dict[str, object]:
    (folder / "main.yaml").write_text(main)
    (folder / "parts.yaml").write_text(parts)
    return bundle(folder / "main.yaml")


def test_parts_of_other_files_become_components(tmp_path: Path) -> None:
    assert bundled(tmp_path) == {
        "openapi": "3.1.0",
        "x-messages": {"type": "wrong"},
        "components": {
            "schemas": {
                "Own": {"type": "object", "properties": {"part": {"$ref": "#/components/schemas/Part"}}},
                "Part": {"type": "array", "items": {"$ref": "#/components/schemas/Inner"}},
                "Inner": {"type": "string"},
            },
            "headers": {"Linked": {"schema": {"type": "string"}}},
        },
    }


def test_two_components_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="both define components/schemas/Part"):
        bundled(tmp_path, MAIN.replace("Own:", "Part:"))


def test_a_reference_into_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="nothing at /components/schemas/Part"):
        bundled(tmp_path, parts=PARTS.replace("Part:", "Other:"))


def test_a_key_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="'openapi' occurs twice"):
        bundled(tmp_path, MAIN + "openapi: 3.1.1\n")


def test_pointers_may_hold_slashes() -> None:
    assert look_up({"paths": {"/v1/models": 1}}, "/paths/~1v1~1models") == 1


def test_operations_have_short_names(nim: dict[str, object]) -> None:
    assert [found.name for found in operations(nim)] == ["completions", "models", "health.live", "health.ready"]


def test_a_body_must_be_a_component() -> None:
    with pytest.raises(DocumentError, match="must be a reference"):
        component_name({"type": "object"})
