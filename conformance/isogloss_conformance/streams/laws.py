"""What must hold across the events of a stream. Each law says in words what is wrong, or None."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isogloss_conformance.events import Recording

Json = Any
Chunk = dict[str, Json]
CONSTANT = ("id", "object", "created", "model")
REPLACEMENT = "\ufffd"


def terminated(recording: Recording, terminator: str | None) -> str | None:
    """Exactly one terminator, last; none where the dialect has none."""
    places = [number for number, event in enumerate(recording.events) if event.data == terminator]
    if terminator is None:
        done = any(event.data == "[DONE]" for event in recording.events)
        return "the dialect has no terminator, and [DONE] came" if done else None
    if len(places) != 1:
        return f"{terminator} came {len(places)} times"
    if places[0] != len(recording.events) - 1 or recording.rest.strip():
        return f"something follows {terminator}"
    return None


def constant(chunks: Sequence[Chunk]) -> str | None:
    """id, object, created and model are the same in all chunks."""
    for name in CONSTANT:
        values = {repr(chunk.get(name)) for chunk in chunks}
        if len(values) != 1:
            return f"{name!r} has {len(values)} values: {', '.join(sorted(values)[:3])}"
    return None


def finished(chunks: Sequence[Chunk], wanted: int) -> str | None:
    """Indexes are 0 to wanted - 1; each has one finish reason, in its last chunk."""
    reasons: dict[int, list[Json]] = {}
    for choice in choices(chunks):
        reasons.setdefault(choice.get("index", -1), []).append(choice.get("finish_reason"))
    if sorted(reasons) != list(range(wanted)):
        return f"the indexes are {sorted(reasons)}, not 0 to {wanted - 1}"
    for index, mine in reasons.items():
        if mine[-1] is None:
            return f"choice {index} ends without a finish reason"
        if sum(reason is not None for reason in mine) != 1:
            return f"choice {index} has {sum(reason is not None for reason in mine)} finish reasons"
    return None


def text(chunks: Sequence[Chunk], index: int = 0) -> str:
    """The joined text of one choice, whole answers included."""
    return "".join(_text(choice) for choice in choices(chunks) if choice.get("index", 0) == index)


def equal_text(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """The joined text is that of the same call without a stream."""
    joined, expected = text(chunks), text([whole])
    return None if joined == expected else f"joined: {joined[:120]!r}, without a stream: {expected[:120]!r}"


def equal_logprobs(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """The joined tokens of `logprobs` are those of the same call without a stream; offsets never fall."""
    joined, expected = _tokens(chunks), _tokens([whole])
    if not expected:
        return "the answer without a stream has no log probabilities"
    if joined != expected:
        return f"joined: {joined[:8]}, without a stream: {expected[:8]}"
    offsets = [offset for choice in choices(chunks) for offset in (choice.get("logprobs") or {}).get("text_offset", ())]
    return None if offsets == sorted(offsets) else f"the offsets fall: {offsets[:12]}"


def usage_unasked(chunks: Sequence[Chunk]) -> str | None:
    """No chunk has usage if nobody asked."""
    return "a chunk has usage though nobody asked" if any(chunk.get("usage") for chunk in chunks) else None


def usage_asked(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """One chunk has usage: the last, without choices; and it is that of the same call without a stream."""
    having = [number for number, chunk in enumerate(chunks) if chunk.get("usage")]
    if having != [len(chunks) - 1]:
        return f"usage came in {len(having)} chunks, not in the last alone"
    if chunks[-1].get("choices") != []:
        return "the chunk with usage has choices"
    figures = ("prompt_tokens", "completion_tokens", "total_tokens")
    for name in figures:
        if chunks[-1]["usage"].get(name) != (whole.get("usage") or {}).get(name):
            return f"{name} is {chunks[-1]['usage'].get(name)}, without a stream {whole['usage'].get(name)}"
    return None


def usage_so_far(chunks: Sequence[Chunk]) -> str | None:
    """Every chunk has usage; the prompt's tokens stay, those of the completion rise with the chunks that have text."""
    told = [chunk.get("usage") or {} for chunk in chunks]
    if not told or not all(told):
        return f"{sum(map(bool, told))} of {len(told)} chunks have usage"
    made = [usage["completion_tokens"] for usage in told]
    spoken = sum(bool(text([chunk])) for chunk in chunks)
    if made != sorted(made) or (spoken > 1 and made[0] == made[-1]):
        return f"completion_tokens do not rise: {made}"
    prompts = {usage["prompt_tokens"] for usage in told}
    return None if len(prompts) == 1 else f"prompt_tokens change: {sorted(prompts)}"


def whole_characters(chunks: Sequence[Chunk], expected: str) -> str | None:
    """A character split over tokens arrives whole."""
    joined = text(chunks)
    halves = [piece for piece in map(_text, choices(chunks)) if REPLACEMENT in piece]
    if halves:
        return f"a part of a character came: {halves[0]!r}"
    return None if joined == expected else f"the text is {joined!r}, not {expected!r}"


def stopped(chunks: Sequence[Chunk], before: str) -> str | None:
    """The text ends before the stop text; no part of it leaks."""
    joined = text(chunks)
    return None if joined == before else f"the text is {joined!r}, not {before!r}"


def failed(recording: Recording, terminator: str | None) -> str | None:
    """An error after the first token is one event, followed by nothing but the terminator."""
    chunks = recording.chunks(terminator)
    errors = [number for number, chunk in enumerate(chunks) if is_error(chunk)]
    if len(errors) != 1:
        return f"{len(errors)} error events came"
    return None if errors[0] == len(chunks) - 1 else "chunks follow the error"


def is_error(chunk: Chunk) -> bool:
    """Whether an event tells of an error, in whatever form."""
    return "error" in chunk or chunk.get("object") == "error"


def spread(recording: Recording, seconds: float) -> str | None:
    """The first event is there well before the last."""
    if len(recording.events) < 2:
        return "there are no two events"
    gap = recording.events[-1].at - recording.events[0].at
    return None if gap >= seconds else f"all events came within {gap:.3f} s, not over at least {seconds:.3f} s"


def choices(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The choices of all chunks, whole answers included, in the order in which they came."""
    return [choice for chunk in chunks for choice in chunk.get("choices") or () if isinstance(choice, dict)]


def _text(choice: Chunk) -> str:
    place = choice if "text" in choice else choice.get("delta") or choice.get("message") or {}
    return place.get("text") or place.get("content") or ""


def _tokens(chunks: Sequence[Chunk]) -> list[Json]:
    """Token texts of all log probabilities, in either form."""
    found: list[Json] = []
    for choice in choices(chunks):
        logprobs = choice.get("logprobs") or {}
        found += logprobs.get("tokens") or [item.get("token") for item in logprobs.get("content") or ()]
    return found
