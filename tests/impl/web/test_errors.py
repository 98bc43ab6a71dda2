"""Faults that a document has no word for."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from isogloss.web.errors import ErrorRenderer
from isogloss_api import document
from isogloss_spec import Fault


def _renderer(*missing: str) -> ErrorRenderer:
    nim: dict[str, Any] = document("nim")
    for name in missing:
        del nim["x-faults"][name]
    return ErrorRenderer(nim)


def test_a_refusal_becomes_the_documents_general_one() -> None:
    error = _renderer("timeout").render(Fault("timeout"), "id", "0" * 32)
    assert (error.fault, error.status) == ("timeout", 400)
    assert orjson.loads(error.body)["message"] == "The request was refused: timeout."


def test_the_servers_own_fault_becomes_a_failure() -> None:
    assert _renderer("overloaded").render(Fault("overloaded"), "id", "0" * 32).status == 500


def test_without_a_general_refusal_it_is_a_failure() -> None:
    assert _renderer("timeout", "rule").render(Fault("timeout"), "id", "0" * 32).status == 500


@pytest.mark.parametrize("name", ["nim", "service"])
def test_every_fault_of_a_document_can_be_rendered(name: str) -> None:
    renderer = ErrorRenderer(document(name))
    for fault, entry in document(name)["x-faults"].items():
        error = renderer.render(Fault(fault), "id", "0" * 32)
        assert error.status == entry["status"]
        assert b"{" + b"retry_after" not in b"".join(value for _, value in error.headers)


def test_retry_after_of_the_fault_counts() -> None:
    error = _renderer().render(Fault("overloaded", values={"retry_after": 7}), "id", "0" * 32)
    assert (b"retry-after", b"7") in error.headers
