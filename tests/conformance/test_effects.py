"""Each effect notices a server that takes a field and does nothing with it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, cast

import isogloss_api
import pytest
from isogloss_conformance.client import Client
from isogloss_conformance.effects.caller import Caller, NoReply, Reply
from isogloss_conformance.effects.effect import Effect
from isogloss_conformance.effects.step import EFFECTS
from isogloss_conformance.effects.unobserved import UNOBSERVED
from isogloss_conformance.obstacles import DIALECTS
from isogloss_conformance.results import Status
from isogloss_conformance.session import Facts, Session


def reply(text: str) -> Reply:
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}
    return Reply({"choices": [choice], "usage": {"prompt_tokens": 4, "completion_tokens": 9}}, "curl")


MEDIA = {
    "image_url": "data:a",
    "video_url": "data:b",
    "audio_url": "data:c",
    "input_audio": {"data": "c", "format": "wav"},
}


class Deaf:
    """Says the same whatever it is asked."""

    scripted = True
    model = "m"
    media = MEDIA
    fields = frozenset({"logit_bias"})
    defaults: Mapping[str, Any] = {"temperature": 1, "max_tokens": 16}

    def allows(self, **fields: Any) -> bool:
        return True

    def __call__(self, **fields: Any) -> Reply:
        return reply("the quick brown fox")


class Pensive:
    """Thinks the same whatever it is asked, and says so in the content too."""

    scripted = False

    def __call__(self, **fields: Any) -> Reply:
        message = {"content": "hm Yes", "reasoning_content": "hm"}
        return Reply({"choices": [{"message": message}], "usage": {"completion_tokens": 9}}, "curl")


class Moody:
    """Says something else each time."""

    media = MEDIA

    def __init__(self) -> None:
        self._random = random.Random(1)

    def __call__(self, **fields: Any) -> Reply:
        return reply("".join(self._random.choices("abcdefgh", k=20)))


ONLY_MOODY = ("temperature", "top_k", "top_p", "min_p", "image_same", "audio_same")
ONLY_MOODY += tuple(f"{kind}_spellings" for kind in ("image_url", "video_url", "audio_url"))
"""Effects that are about two answers being equal."""


def finds(effect: Effect, server: object) -> bool:
    try:
        return effect.look(cast("Caller", server)) is not None
    except (ValueError, KeyError):  # the text that it looks for is not there
        return True


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.name)
def test_a_field_without_effect_is_noticed(effect: Effect) -> None:
    servers: dict[str, object] = {name: Moody() for name in ONLY_MOODY}
    servers |= {name: Pensive() for name in ("reasoning", "enable_thinking")}
    assert finds(effect, servers.get(effect.name, Deaf()))


@pytest.mark.parametrize("name", ["temperature", "top_k", "top_p", "min_p"])
def test_two_equal_texts_prove_nothing_where_chance_changes_none(name: str) -> None:
    effect = next(effect for effect in EFFECTS if effect.name == name)
    with pytest.raises(NoReply, match="temperature 1"):
        effect.look(cast("Caller", Deaf()))


def test_tokens_that_do_not_make_up_the_text_say_nothing_of_places() -> None:
    offsets = next(effect for effect in EFFECTS if effect.name == "text_offset")
    logprobs = {"tokens": ["other"], "text_offset": [0]}
    told = Reply({"choices": [{"index": 0, "text": "text", "logprobs": logprobs}]}, "curl")
    with pytest.raises(NoReply, match="do not make up"):
        offsets.look(cast("Caller", lambda **fields: told))


def test_without_thoughts_nothing_is_proved_about_them() -> None:
    thought = next(effect for effect in EFFECTS if effect.name == "reasoning")
    with pytest.raises(NoReply) as caught:
        finds(thought, Deaf())
    assert caught.value.outcome.status is Status.SKIP


def answered(*calls: dict[str, Any], finish: str = "tool_calls") -> Reply:
    message = {"content": "", "tool_calls": [{"id": "c", "type": "function", "function": call} for call in calls]}
    return Reply({"choices": [{"message": message, "finish_reason": finish}]}, "curl")


RIGHT = {"name": "clock", "arguments": '{"winter": true}'}


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        (answered(RIGHT), None),
        (answered(RIGHT, {"name": "clock", "arguments": "{"}, finish="length"), None),
        (answered(), "no call"),
        (answered({"name": "clock", "arguments": "{"}), "no JSON"),
        (answered({"name": "clock", "arguments": {"winter": True}}), "no text"),
        (answered({"name": "clock", "arguments": '{"winter": 1}'}), "fit"),
        (answered({"name": "other", "arguments": "{}"}), "nobody offered"),
        (answered(RIGHT, finish="stop"), "ends with"),
    ],
)
def test_what_a_required_call_must_be(reply: Reply, wrong: str | None) -> None:
    required = next(effect for effect in EFFECTS if effect.name == "tool_choice_required")
    found = required.look(cast("Caller", lambda **fields: reply))
    assert found is None if wrong is None else wrong in str(found)


def test_names_are_unique() -> None:
    assert len({effect.name for effect in EFFECTS}) == len(EFFECTS)


def fields_of(dialect: str) -> frozenset[str]:
    client = Client("http://127.0.0.1:9")
    fields = Caller(Session(isogloss_api.document(dialect), client, Facts("m"))).fields
    client.close()
    return fields


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_field_has_an_effect_or_a_reason_why_none_shows(dialect: str) -> None:
    fields = fields_of(dialect)
    known = [effect.fields for effect in EFFECTS if set(effect.fields) <= fields]
    assert fields - set().union(*known) == fields & UNOBSERVED.keys()


def test_no_reason_is_left_over() -> None:
    fields = set().union(*map(fields_of, DIALECTS))
    assert UNOBSERVED.keys() <= fields


class Hiding:
    """Shows special tokens where they are wanted, if any came."""

    scripted = False

    def __init__(self, came: str) -> None:
        self._came = came

    def __call__(self, **fields: Any) -> Reply:
        return reply("a" if fields["skip_special_tokens"] else f"a{self._came}")


def test_without_special_tokens_nothing_is_proved_about_them() -> None:
    effect = next(effect for effect in EFFECTS if effect.name == "skip_special_tokens")
    assert effect.look(cast("Caller", Hiding("<end>"))) is None
    with pytest.raises(NoReply, match="no special token came"):
        effect.look(cast("Caller", Hiding("")))
