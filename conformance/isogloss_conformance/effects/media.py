"""Effects of pictures, films and sounds: the prompt grows with each, however it is spelt, and the model sees them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from isogloss_conformance.effects.caller import Caller, Reply
from isogloss_conformance.effects.effect import Effect, rising, unequal
from isogloss_conformance.pictures import BLUE, RED, SIDE, picture

Json = Any
TEXT = {"type": "text", "text": "What is this?"}


def _asked(call: Caller, *parts: Json, **fields: Json) -> Reply:
    """A short answer to a text and media behind it."""
    return call(messages=[{"role": "user", "content": [TEXT, *parts]}], **{"max_tokens": 4, **fields})


def _part(kind: str, value: Json) -> dict[str, Json]:
    return {"type": kind, kind: value}


def _grows(kind: str, call: Caller) -> str | None:
    part = _part(kind, call.media[kind])
    sizes = [_asked(call, *parts).prompt_tokens for parts in ([], [part])]
    return rising(sizes, "without and with it the prompt has")


def _pictures(call: Caller) -> str | None:
    parts = [_part("image_url", picture(colour)) for colour in (RED, BLUE)]
    sizes = [_asked(call, *parts[:count]).prompt_tokens for count in range(3)]
    return rising(sizes, "with no picture, one and two the prompt has")


def _seen(call: Caller) -> str | None:
    """Log probabilities tell two pictures apart where the model's words do not."""
    seen = [_scores(call, colour) for colour in (RED, BLUE)]
    return "two pictures give the same log probabilities" if seen[0] == seen[1] else None


def _scores(call: Caller, colour: tuple[int, int, int]) -> Json:
    part = _part("image_url", picture(colour))
    return _asked(call, part, max_tokens=1, logprobs=True, top_logprobs=5).choices[0].get("logprobs")


def _same(call: Caller) -> str | None:
    part = _part("image_url", picture())
    texts = [_asked(call, part, max_tokens=8).text for _ in range(2)]
    return unequal("the second text", texts[1], texts[0])


def _spellings(kind: str, call: Caller) -> str | None:
    """As a text, in an object, and without the type of the part."""
    value = picture(side=2 * SIDE) if kind == "image_url" else call.media[kind]
    parts = (_part(kind, value), _part(kind, {"url": value}), {kind: value})
    return _alike([_asked(call, part) for part in parts])


def _input_audio(call: Caller) -> str | None:
    """The same sound as bytes and as an address."""
    told = call.media["input_audio"]
    address = f"data:audio/x-{told['format']};base64,{told['data']}"
    return _alike([_asked(call, _part("input_audio", told)), _asked(call, _part("audio_url", address))])


def _alike(replies: list[Reply]) -> str | None:
    seen = {(reply.prompt_tokens, reply.text) for reply in replies}
    return None if len(seen) == 1 else f"prompts and answers differ: {sorted(seen)!r:.300}"


def _media_effects() -> Iterator[Effect]:
    image = ("image_url",)
    yield Effect("images", "Each picture lengthens the prompt.", image, _pictures)
    yield Effect("image_same", "One picture brings one answer.", image, _same)
    yield Effect("image_seen", "Another picture changes log probabilities.", (*image, "top_logprobs"), _seen)
    for kind, what in (("image_url", "picture"), ("video_url", "film"), ("audio_url", "sound")):
        look = partial(_spellings, kind)
        yield Effect(f"{kind}_spellings", f"However its address is spelt, a {what} is the same.", (kind,), look)
    yield Effect("films", "A film lengthens the prompt.", ("video_url",), partial(_grows, "video_url"))
    yield Effect("sounds", "A sound lengthens the prompt.", ("audio_url",), partial(_grows, "audio_url"))
    yield Effect("inline_sounds", "So does one in the body.", ("input_audio",), partial(_grows, "input_audio"))
    yield Effect("audio_same", "A sound is the same wherever it stands.", ("input_audio", "audio_url"), _input_audio)


MEDIA_EFFECTS = tuple(_media_effects())
