"""Effects of stop texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isogloss_conformance.effects.caller import Caller, Reply
from isogloss_conformance.effects.effect import Effect, unequal, unprovable, words

Json = Any
TOKENS = 12
LENGTH = 3
"""Characters of a stop text."""


def _said(call: Caller) -> tuple[str, str]:
    """What the model says anyway, and a text from its middle. Raises NoReply if it says nothing."""
    said = words(call, TOKENS)
    return said, _middle(said)


def _middle(said: str) -> str:
    return said[len(said) // 2 :][:LENGTH]


def _stop(call: Caller) -> str | None:
    """The text that comes is the last of the list."""
    said, word = _said(call)
    others = [word + "#" * times for times in (1, 2, 3)]
    return _ended(call(max_tokens=TOKENS, stop=[*others, word]), said, word)


def _single(call: Caller) -> str | None:
    if not call.allows(stop="a"):
        raise unprovable("the document takes lists alone")
    said, word = _said(call)
    return _ended(call(max_tokens=TOKENS, stop=word), said, word)


def _ended(reply: Reply, said: str, word: str) -> str | None:
    """The text ends before the word; where the document has a member for it, the answer says which word it was."""
    choice = reply.choices[0]
    return (
        unequal("the text", reply.text, said[: said.index(word)])
        or unequal("finish_reason", reply.finish_reason, "stop")
        or unequal("stop_reason", choice.get("stop_reason", word), word)
    )


def _include_stop(call: Caller) -> str | None:
    said, word = _said(call)
    kept, plain = (call(max_tokens=TOKENS, stop=[word], **{FIELD: wanted}).text for wanted in (True, False))
    return unequal("the text", kept, said[: said.index(word)] + word) or unequal(
        "the text without the field", plain, said[: said.index(word)]
    )


FIELD = "include_stop_str_in_output"


def _each_choice(call: Caller) -> str | None:
    """A text from the middle of the last choice is in none of them any more."""
    asked: dict[str, Json] = {"max_tokens": TOKENS, "n": 2, "temperature": 1, "seed": 1}
    before = call(**asked).texts[-1]
    word = _middle(before)
    if not word:
        raise unprovable("the model says nothing")
    after = call(**asked, stop=[word]).texts
    return f"{word!r} is in {after}" if any(word in text for text in after) else None


def _stop_effects() -> Iterator[Effect]:
    yield Effect("stop", "A stop text ends the completion before it.", ("stop",), _stop)
    yield Effect("stop_text", "A single stop text does the same as a list.", ("stop",), _single)
    yield Effect("stop_each", "A stop text ends each choice.", ("stop", "n", "seed"), _each_choice)
    yield Effect("include_stop", "include_stop_str_in_output keeps the stop text.", (FIELD, "stop"), _include_stop)


STOP_EFFECTS = tuple(_stop_effects())
"""What stop texts must do."""
