"""One package per document: bundle, models, routes; and the types they share."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from isogloss_spec.context import Context
from isogloss_spec.document import (
    Operation,
    bundle,
    operations,
    request_schema_name,
    resolve,
)
from isogloss_spec.generate.components import (
    answer_names,
    effective_components,
    event_names,
    reachable,
    request_roots,
    response_roots,
)
from isogloss_spec.generate.models import PYDANTIC, TYPED_DICT, GenerationError, write_models
from isogloss_spec.types import Document, Json

COMMAND = "make generate"
_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("isogloss_spec.generate"),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
    autoescape=False,  # noqa: S701 (Python code, not HTML)
)


def generate_package(documents: list[Path], target: Path) -> None:
    """Write the package for all documents into `target`."""
    target.mkdir(parents=True, exist_ok=True)
    names = [path.stem for path in documents]
    header = _header("the templates of isogloss_spec")
    _render("package.py.j2", target / "__init__.py", header=header, documents=names)
    _render("runtime.py.j2", target / "runtime.py", header=header, context=_context_fields())
    (target / "py.typed").touch()
    for path in documents:
        _generate_document(path, target / path.stem)


def _generate_document(path: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    document = bundle(path)
    source = f"openapi/{path.name}"
    stamped = {"x-generated": _stamp(source), **document}
    text = json.dumps(stamped, indent=1, ensure_ascii=False)
    (target / "document.json").write_text(text + "\n", encoding="utf-8")
    header = _header(source)
    _write_sides(document, target, header)
    context = {
        "header": header,
        "name": path.stem,
        "operations": [_operation(document, found) for found in operations(document)],
        "has_requests": bool(request_roots(document)),
        "has_refusals": any("200" not in found.node["responses"] for found in operations(document)),
    }
    _render("handlers.py.j2", target / "handlers.py", **context)
    _render("document_package.py.j2", target / "__init__.py", **context)


def _write_sides(document: Document, target: Path, header: str) -> None:
    answers = reachable(document, response_roots(document))
    write_models(answers, target / "responses.py", header=header, flags=TYPED_DICT)
    roots = request_roots(document)
    if roots:
        bodies = reachable(document, roots)
        write_models(bodies, target / "requests.py", header=header, flags=PYDANTIC)
        effective = effective_components(document)
        write_models(effective, target / "effective.py", header=header, flags=TYPED_DICT)


def _operation(document: Document, found: Operation) -> dict[str, Json]:
    """What the template needs to know of one operation."""
    node = found.node
    answers = node["responses"].get("200", {})
    ok = resolve(document, answers)
    content: Mapping[str, Json] = ok.get("content", {})
    stream = content.get("text/event-stream")
    body = request_schema_name(document, found)
    json_answer = next(iter(answer_names(document, answers)), None)
    return {
        "id": found.id,
        "method": found.method.upper(),
        "path": found.path,
        "summary": node["summary"],
        "body": body,
        "answer": json_answer if "application/json" in content else None,
        "media_type": next(iter(content), "application/json"),
        "refused": not content,
        "chunk": next(event_names(document, stream["schema"])) if stream else None,
        "framing": stream.get("x-stream") if stream else None,
        "statuses": tuple(sorted(int(status) for status in node["responses"])),
        "faults": tuple(node["x-faults"]),
        "public": node.get("security") == [],
    }


def _render(template: str, target: Path, **context: Any) -> None:
    text = _TEMPLATES.get_template(template).render(**context)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "100", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GenerationError(done.stderr)
    target.write_text(done.stdout, encoding="utf-8")


def _context_fields() -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in Context.__annotations__.items() for kind in [_type(kind)]]


def _type(annotation: Any) -> str:
    return str(getattr(annotation, "__forward_arg__", annotation))


def _stamp(source: str) -> dict[str, str]:
    return {"by": f"isogloss_spec {_version('isogloss')}", "from": source, "command": COMMAND}


def _header(source: str) -> str:
    tools = f"isogloss_spec {_version('isogloss')}, datamodel-code-generator {_version('datamodel-code-generator')}"
    return f"# Generated by {tools} from {source} with `{COMMAND}`. Do not edit."


def _version(distribution: str) -> str:
    return importlib.metadata.version(distribution)
