"""The few answers that belong to no document: the documents themselves, and an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import orjson

_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}code{font-size:.9em}"


@dataclass(frozen=True, slots=True)
class Page:
    """A fixed answer to GET."""

    media_type: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


def document_page(document: Mapping[str, Any]) -> Page:
    """A bundled document as JSON."""
    return Page("application/json", orjson.dumps(document))


def index_page(dialects: Iterable[tuple[str, str]], models: Iterable[str]) -> Page:
    """A list of dialects (name and title of the document) and of models."""
    rows = "".join(
        f'<li>{escape(title)}: <code>/{escape(name)}/v1</code>, <a href="/{escape(name)}/openapi.json">OpenAPI</a></li>'
        for name, title in dialects
    )
    names = "".join(f"<li><code>{escape(model)}</code></li>" for model in models)
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Isogloss</title>'
        f"<style>{_STYLE}</style><h1>Isogloss</h1><h2>Dialects</h2><ul>{rows}</ul><h2>Models</h2><ul>{names}</ul>"
        '<p><a href="/health/ready">Readiness</a>, <a href="/metrics">metrics</a>, '
        '<a href="/openapi.json">OpenAPI of these routes</a></p></html>'
    )
    policy = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    headers = ((b"content-security-policy", policy), (b"x-content-type-options", b"nosniff"))
    return Page("text/html; charset=utf-8", text.encode(), headers)
