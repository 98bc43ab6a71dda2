"""schemathesis finds nothing that the document does not say."""

from __future__ import annotations

import isogloss_api
import pytest
from isogloss_conformance.fuzz import fuzz
from support.server import Server


@pytest.mark.parametrize(("dialect", "least"), [("nim", 400), ("atoma", 250), ("acs", 400), ("mindie", 400)])
def test_dialects(scripted: Server, dialect: str, least: int) -> None:
    report = fuzz(
        isogloss_api.document(dialect),
        f"{scripted.url}/{dialect}",
        models=["scripted"],
        features=frozenset({"best_of", "guided", "nvext"}),
        examples=60,
    )
    assert report.errors == []
    assert [(finding.check, finding.message, finding.curl) for finding in report.findings] == []
    assert report.judged > least


def test_a_wrong_document_is_noticed(scripted: Server) -> None:
    """The check can fail: against a document with another bound the server is in the wrong."""
    document = isogloss_api.document("nim")
    document["components"]["schemas"]["CompletionRequest"]["properties"]["logprobs"]["maximum"] = 3
    report = fuzz(document, scripted.url + "/nim", models=["scripted"], features=frozenset(), examples=1)
    assert any("out_of_range" in finding.message for finding in report.findings)
