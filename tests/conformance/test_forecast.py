"""What the suite expects where only the server knows the figures."""

from __future__ import annotations

from typing import Any

import isogloss_api
import pytest
from isogloss_conformance.client import Answer, Client
from isogloss_conformance.exchange import only
from isogloss_conformance.forecast import Forecaster, departure
from isogloss_conformance.session import Facts, Session
from isogloss_spec.faults import Fault

NIM = Session(isogloss_api.document("nim"), Client("http://127.0.0.1:9"), Facts("m", 1000, frozenset({"best_of"})))


def of(**fields: Any) -> tuple[bool, list[str | None]]:
    found = Forecaster(NIM).of({"model": "m", "prompt": "Once upon a time", **fields})
    return found.success, [fault.entry or fault.name for fault in found.faults]


def test_a_plain_body_must_be_taken() -> None:
    assert of() == (True, [])


def test_beyond_the_context_must_be_refused() -> None:
    assert of(max_tokens=1000) == (False, ["nim/completions/max_tokens/context"])


def test_near_the_edge_both_may_be() -> None:
    """Nobody outside knows whether the prompt has one token or twelve."""
    assert of(max_tokens=990) == (True, ["nim/completions/max_tokens/context"])


def test_token_ids_are_counted_exactly() -> None:
    assert of(prompt=[1] * 10, max_tokens=990) == (True, [])
    assert of(prompt=[1] * 11, max_tokens=990) == (False, ["nim/completions/max_tokens/context"])


def test_an_id_that_no_vocabulary_has() -> None:
    assert of(prompt=[2**31 - 1]) == (False, ["nim/completions/prompt/vocabulary"])
    assert of(prompt=[5000]) == (True, ["nim/completions/prompt/vocabulary"])


def test_a_feature_that_the_server_lacks_must_be_refused() -> None:
    found = Forecaster(NIM).of({"model": "m", "prompt": "x", "suffix": "y"})
    assert found.lacks_feature


def answer(status: int, param: str | None) -> Answer:
    body = '{"object": "error", "message": "m", "type": "BadRequestError", "param": %s, "code": 400}'
    shown = "null" if param is None else f'"{param}"'
    return Answer(status, {}, (body % shown).encode(), 0.0)


@pytest.mark.parametrize(
    ("got", "fine"),
    [
        (Answer(200, {}, b"{}", 0.0), True),
        (answer(400, "max_tokens"), True),
        (answer(400, "prompt"), False),
        (answer(400, None), False),
        (answer(422, "max_tokens"), False),
    ],
)
def test_a_later_rule_excuses_only_its_own_status_and_param(got: Answer, fine: bool) -> None:
    forecast = Forecaster(NIM).of({"model": "m", "prompt": "Once upon a time", "max_tokens": 990})
    assert (departure(NIM, forecast, got) is None) is fine


def test_a_header_of_the_fault_must_be_there() -> None:
    body = b'{"object": "error", "message": "", "type": "AuthenticationError", "param": null, "code": 401}'
    forecast = only(Fault("unauthorized"))
    assert "WWW-Authenticate" in str(departure(NIM, forecast, Answer(401, {}, body, 0.0)))
    assert departure(NIM, forecast, Answer(401, {"www-authenticate": "Bearer"}, body, 0.0)) is None
