"""`python -m isogloss_spec`: lint, bundle, list and generate from the documents."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from isogloss_spec.document import DocumentError, bundle
from isogloss_spec.ledger import ledger
from isogloss_spec.lint import lint
from isogloss_spec.rules import RuleError
from isogloss_spec.types import Json

SHARED = {"common.yaml"}
"""Files that only lend parts to the documents."""


def documents_in(folder: Path) -> list[Path]:
    """The documents of a folder, sorted by name."""
    return [path for path in sorted(folder.glob("*.yaml")) if path.name not in SHARED]


def _generate(options: argparse.Namespace) -> int:
    from isogloss_spec.generate.package import generate_package  # noqa: PLC0415 (needs development tools)

    generate_package(documents_in(options.openapi), options.output)
    return 0


def _bundle(options: argparse.Namespace) -> int:
    json.dump(_document(options), sys.stdout, indent=1)
    return 0


def _document(options: argparse.Namespace) -> dict[str, Json]:
    path: Path = options.openapi / f"{options.name}.yaml"
    if not path.is_file():
        names = ", ".join(found.stem for found in documents_in(options.openapi)) or "none"
        raise DocumentError(f"no document {options.name} in {options.openapi} (documents there: {names})")
    return bundle(path)


def _lint(options: argparse.Namespace) -> int:
    findings = [f"{path}: {finding}" for path in documents_in(options.openapi) for finding in lint(bundle(path))]
    print("\n".join(findings) or "no findings")
    return 1 if findings else 0


def _ledger(options: argparse.Namespace) -> int:
    for entry in ledger(_document(options)):
        cost = f"{entry.fault} {entry.status}" if entry.fault else "accepted"
        marks = f" [{', '.join(entry.features)}]" if entry.features else ""
        print(f"{entry.id}\t{entry.level}\t{cost}\t{entry.source}{marks}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="isogloss_spec", description=__doc__)
    parser.add_argument("--openapi", type=Path, default=Path("openapi"), help="folder of the documents")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("generate", help="write models, stubs and bundles")
    add.add_argument("--output", type=Path, default=Path("generated/isogloss_api"))
    add.set_defaults(run=_generate)
    add = commands.add_parser("lint", help="check extensions, writing rules and the rules' own bodies")
    add.set_defaults(run=_lint)
    add = commands.add_parser("ledger", help="list every rule: id, level, what breaking it costs, source")
    add.add_argument("name")
    add.set_defaults(run=_ledger)
    add = commands.add_parser("bundle", help="print one document as JSON with all parts in it")
    add.add_argument("name")
    add.set_defaults(run=_bundle)
    return parser


def main() -> int:
    """Run one command. Returns 0, 1 for findings, 2 for a document that cannot be read."""
    options = _parser().parse_args()
    try:
        result: int = options.run(options)
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (DocumentError, RuleError, OSError) as error:
        print(f"isogloss_spec: {error}", file=sys.stderr)
        return 2
    return result


if __name__ == "__main__":
    sys.exit(main())
