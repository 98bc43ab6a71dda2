"""What the suite finds out about a server by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import isogloss_api
import pytest
from isogloss_conformance.client import Answer, Client
from isogloss_conformance.discover import discover
from isogloss_conformance.obstacles import DiscoveryError
from isogloss_conformance.session import Session
from support.server import Server


def test_our_server(session: Callable[..., Session]) -> None:
    facts = session("nim").facts
    assert (facts.model, facts.context_length, facts.scripted) == ("scripted", 4096, True)
    assert "best_of" in facts.features


def test_a_feature_is_lacking_only_if_the_server_says_so_properly(session: Callable[..., Session]) -> None:
    assert "suffix" not in session("atoma").facts.features


def test_tools_and_media_are_found_by_trying(session: Callable[..., Session]) -> None:
    assert session("mindie").facts.features >= {"tools", "guided", "image", "video", "audio"}


def test_nobody_there() -> None:
    with pytest.raises(DiscoveryError, match="cannot be reached"):
        discover(isogloss_api.document("nim"), Client("http://127.0.0.1:9", timeout=2))


@pytest.mark.parametrize("listed", [{"data": []}, {"data": "x"}, [], {"data": [1]}, {"data": [{"id": "\ud800"}]}])
def test_a_list_without_models_asks_for_the_option(listed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client("http://127.0.0.1:9")
    monkeypatch.setattr(client, "send", lambda request: Answer(200, {}, json.dumps(listed).encode(), 0.0))
    with pytest.raises(DiscoveryError, match="--model"):
        discover(isogloss_api.document("nim"), client)


def test_a_named_model_is_taken_with_its_length(scripted: Server) -> None:
    document = isogloss_api.document("nim")
    facts = discover(document, Client(f"{scripted.url}/nim"), model="scripted", features=frozenset())
    assert (facts.context_length, facts.features) == (4096, frozenset())
