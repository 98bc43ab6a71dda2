"""A fuzzed request that lacks the key on purpose is no matter of what its body deserves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import isogloss_api
import pytest
from isogloss_conformance import fuzz
from isogloss_conformance.oracle import Oracle

PATH = "/v1/completions"


def look(headers: dict[str, str], status: int) -> None:
    """Let our check judge the answer to a body that must be refused with 422."""
    request: Any = SimpleNamespace(method="POST", headers={"Content-Type": "application/json", **headers}, body=b"{}")
    response: Any = SimpleNamespace(request=request, status_code=status, content=b"{}")
    operation = SimpleNamespace(path=PATH, schema=SimpleNamespace(raw_schema={"x-conformance-run": -2}))
    check: Any = fuzz.document_oracle
    check(None, response, SimpleNamespace(operation=operation))


def test_only_requests_with_the_key_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Oracle(isogloss_api.document("nim"), models=["m"])
    monkeypatch.setitem(fuzz._RUNS, -2, fuzz._Run(oracle, {}, "Bearer k"))
    look({}, 401)
    look({"Authorization": "Bearer other"}, 401)
    with pytest.raises(AssertionError, match="the document says 422"):
        look({"Authorization": "Bearer k"}, 401)
