"""Requests and what is made of their answers, where a server is not ours."""

from __future__ import annotations

import json
from typing import Any

import isogloss_api
import pytest
from isogloss_conformance.checks import Check
from isogloss_conformance.client import Answer, Client, Request
from isogloss_conformance.results import Status
from isogloss_conformance.rules.step import RulesStep
from isogloss_conformance.session import Facts, Session
from isogloss_conformance.smoke import SmokeStep
from support.server import Server


@pytest.fixture
def session(scripted: Server) -> Session:
    document = isogloss_api.document("nim")
    document["components"]["schemas"]["CompletionResponse"]["required"].append("fingerprint")
    return Session(document, Client(f"{scripted.url}/nim"), Facts("scripted", 4096, frozenset()))


def found(step: type[Any], session: Session, check_id: str) -> Check:
    return next(check for check in step(session).checks() if check.id == check_id)


def test_a_member_that_every_answer_lacks_is_blamed_on_no_rule(session: Session) -> None:
    smoke = found(SmokeStep, session, "nim/smoke/completions").run()
    assert smoke.status is Status.FAIL
    assert "fingerprint" in smoke.got
    assert found(RulesStep, session, "nim/completions/n/minimum").run().status is Status.PASS


def test_what_is_wrong_with_one_answer_is_blamed_on_its_rule(session: Session) -> None:
    choice: dict[str, Any] = session.document["components"]["schemas"]["CompletionChoice"]
    choice["properties"]["index"]["maximum"] = 1
    result = found(RulesStep, session, "nim/completions/n/maximum").run()
    assert result.status is Status.FAIL
    assert "index" in result.got


def test_a_refused_body_keeps_no_wrong_server_busy(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    send = session.client.send

    def seen(request: Request, **options: bool) -> Answer:
        sent.append(json.loads(request.body))
        return send(request, **options)

    monkeypatch.setattr(session.client, "send", seen)
    assert found(RulesStep, session, "nim/completions/echo/type").run().status is Status.PASS
    refused = [body for body in sent if not isinstance(body.get("echo", True), bool)]
    assert len(refused) > 1
    assert all(body["max_tokens"] == 1 for body in refused)
