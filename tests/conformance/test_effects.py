"""Each effect notices a server that takes a field and does nothing with it."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from isogloss_conformance.caller import Caller, Reply
from isogloss_conformance.effects import EFFECTS, Effect


def reply(text: str) -> Reply:
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}
    return Reply({"choices": [choice], "usage": {"prompt_tokens": 4, "completion_tokens": 9}}, "curl")


class Deaf:
    """Says the same whatever it is asked."""

    def __call__(self, **fields: Any) -> Reply:
        return reply("the quick brown fox")


class Moody:
    """Says something else each time."""

    def __init__(self) -> None:
        self._random = random.Random(1)

    def __call__(self, **fields: Any) -> Reply:
        return reply("".join(self._random.choices("abcdefgh", k=20)))


def finds(effect: Effect, server: object) -> bool:
    try:
        return effect.look(cast("Caller", server)) is not None
    except (ValueError, KeyError):  # the text that it looks for is not there
        return True


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.name)
def test_a_field_without_effect_is_noticed(effect: Effect) -> None:
    only_moody = {"temperature", "top_k", "top_p", "min_p"}
    assert finds(effect, Moody() if effect.name in only_moody else Deaf())


def test_names_are_unique() -> None:
    assert len({effect.name for effect in EFFECTS}) == len(EFFECTS)
