"""A guided text comes to its end soon, without a script; what is not guided stays as it is."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from isogloss.engine.api import GenerationRequest, Guide, Sampling, Stopping
from isogloss.engine.scripted.closing import Closing
from isogloss.engine.scripted.engine import ScriptedEngine
from isogloss.engine.scripted.model import tiny_model
from isogloss.engine.scripted.vocabulary import END, FIRST_WORD, VOCAB_SIZE

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        "size": {"type": "number"},
        "more": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
    },
    "required": ["name", "tags", "size", "more"],
    "additionalProperties": False,
}
QUOTE = ord('"')


async def texts(guide: Guide, tokens: int) -> list[str]:
    """What the engine makes of a guide, for some seeds; each must have ended by itself."""
    engine = ScriptedEngine()
    await engine.start()
    found = []
    for seed in range(6):
        for temperature in (0.0, 1.0):
            sampling = Sampling(temperature=temperature, seed=seed)
            request = GenerationRequest("r", [seed, 66], Stopping(tokens), sampling=sampling, guide=guide)
            deltas = [event async for event in engine.generate(request) if hasattr(event, "text")]
            assert deltas[-1].finish.reason == "stop"
            found.append("".join(delta.text for delta in deltas))
    await engine.stop()
    return found


@pytest.mark.parametrize("guide", [Guide("json_schema", json.dumps(SCHEMA)), Guide("json_object")])
async def test_json_ends(guide):
    found = await texts(guide, 90)
    assert all(isinstance(json.loads(text), dict) for text in found)
    assert any(re.search(r" [a-z]+ [a-z]+", text) for text in found), "strings have some words"


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        (r"start: /f\(a='[^']*'\)/", r"f\(a='[^']*'\)"),
        ('start: "<think>" thought "4"\nthought[lazy]: /(?s:.*)<\\/think>/', r"<think>(?s:.*)</think>4"),
        ('start: value "!"\nvalue[lazy]: /(?s:.*)\\n<\\/parameter>\\n/', r"(?s:.*)\n</parameter>\n!"),
    ],
)
async def test_other_texts_end(grammar, pattern):
    assert all(re.fullmatch(pattern, text) for text in await texts(Guide("grammar", grammar), 60))


async def test_forced_text_takes_few_tokens():
    guide = Guide("choice", choices=('<tool_call>{"name": "f", "arguments": {}}</tool_call>',))
    assert len(set(await texts(guide, 11))) == 1


def allowing(*tokens: int) -> np.ndarray:
    allowed = np.zeros(VOCAB_SIZE, dtype=bool)
    allowed[list(tokens)] = True
    return allowed


class Guiding:
    """A guide whose free texts end with a quote."""

    def allowed_after(self, tokens: list[int]) -> np.ndarray:
        free = np.zeros(VOCAB_SIZE, dtype=bool)
        free[FIRST_WORD] = tokens != [QUOTE]
        return np.packbits(free, bitorder="little")


def test_the_wish_grows_with_the_tokens_that_were_free():
    row, allowed, closing = tiny_model().row(1), allowing(QUOTE, FIRST_WORD), Closing()
    first, second = (closing.raised(row, allowed, Guiding()) for _ in range(2))
    assert row[QUOTE] < first[QUOTE] < second[QUOTE]
    assert row[FIRST_WORD] == first[FIRST_WORD] == second[FIRST_WORD]


def test_where_the_text_may_end_only_its_end_is_wished_for():
    row, allowed, closing = tiny_model().row(1), np.ones(VOCAB_SIZE, dtype=bool), Closing()
    closing.raised(row, allowed, Guiding())
    assert [*np.flatnonzero(closing.raised(row, allowed, Guiding()) != row)] == [END]


def test_forced_tokens_are_not_counted():
    row, closing = tiny_model().row(1), Closing()
    for _ in range(9):
        assert closing.raised(row, allowing(QUOTE), Guiding()) is row
    fresh = Closing().raised(row, allowing(QUOTE, 0), Guiding())
    assert closing.raised(row, allowing(QUOTE, 0), Guiding())[QUOTE] == fresh[QUOTE]
