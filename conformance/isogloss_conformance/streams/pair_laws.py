"""What must hold between a stream and the same call without one. Each law says in words what is wrong, or None."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isclose
from typing import Any

from isogloss_conformance.streams import laws
from isogloss_conformance.streams.laws import Chunk

Json = Any
PairLaw = Callable[[Sequence[Chunk], Chunk], str | None]
NEAR = 1e-3
"""How far log probabilities may differ, relative above 1 and absolute below: batches round differently."""
FIGURES = ("prompt_tokens", "completion_tokens", "total_tokens")
JOINED = ("token_ids", "prompt_token_ids")


def same_choices(n: int, prompts: int = 1) -> PairLaw:
    """Indexes are 0 to `prompts * n - 1`, and each prompt's choices say the same, in whatever order they stand."""

    def law(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
        for call in (chunks, [whole]):
            found = sorted({choice.get("index", -1) for choice in laws.choices(call)})
            if found != list(range(prompts * n)):
                return f"the indexes are {found}, not 0 to {prompts * n - 1}"
        for prompt in range(prompts):
            mine = range(prompt * n, (prompt + 1) * n)
            joined, expected = (sorted(laws.text(call, index) for index in mine) for call in (chunks, [whole]))
            if joined != expected:
                return f"choices {mine[0]} to {mine[-1]} joined: {joined}, without a stream: {expected}"
        return None

    return law


def same_end(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """The finish reasons, and what ended the text if that is told, are those of the same call without a stream."""
    for name in ("finish_reason", "stop_reason"):
        joined = sorted(repr(choice[name]) for choice in _last(chunks) if name in choice)
        expected = sorted(repr(choice[name]) for choice in _last([whole]) if name in choice)
        if joined != expected:
            return f"{name}: {', '.join(joined)}; without a stream: {', '.join(expected)}"
    return None


def same_text(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """Text and lists of token ids of one choice are those of the same call without a stream."""
    return laws.equal_text(chunks, whole) or _same_ids(chunks, whole)


def same_answer(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """Text, token ids and end of one choice are those of the same call without a stream."""
    return same_text(chunks, whole) or same_end(chunks, whole)


def same_logprobs(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """Tokens, offsets, values and alternatives are those of the same call without a stream."""
    return laws.equal_logprobs(chunks, whole) or _same_offsets(chunks, whole) or _same_values(chunks, whole)


def usage_at_end(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    """The last chunk of each choice has its usage, and no other has any; together they are that of the whole call."""
    told: dict[Json, Mapping[str, Json]] = {}
    for chunk in chunks:
        ended = [choice.get("index") for choice in laws.choices([chunk]) if choice.get("finish_reason")]
        if bool(ended) is not bool(chunk.get("usage")):
            return f"a chunk that {'ends' if ended else 'does not end'} a choice has usage {chunk.get('usage')}"
        told |= dict.fromkeys(ended, chunk.get("usage") or {})
    return _same_usage(list(told.values()), whole.get("usage") or {})


def _same_usage(told: Sequence[Mapping[str, Json]], expected: Mapping[str, Json]) -> str | None:
    """Each choice has the prompt's tokens and its own."""
    prompts = {usage.get("prompt_tokens") for usage in told}
    if prompts != {expected.get("prompt_tokens")}:
        return f"prompt_tokens are {prompts}, without a stream {expected.get('prompt_tokens')}"
    made = sum(usage.get("completion_tokens") or 0 for usage in told)
    if made != expected.get("completion_tokens"):
        return f"completion_tokens come to {made}, without a stream {expected.get('completion_tokens')}"
    for usage in told:
        prompt, completion, total = (usage.get(name) or 0 for name in FIGURES)
        if prompt + completion != total:
            return f"total_tokens is {total}, not {prompt} + {completion}"
    return None


def _last(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The last part of each choice."""
    return list({choice.get("index", 0): choice for choice in laws.choices(chunks)}.values())


def _same_ids(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    for name in JOINED:
        joined, expected = (
            [token for choice in laws.choices(call) for token in choice.get(name) or ()] for call in (chunks, [whole])
        )
        if joined != expected:
            return f"{name} joined: {joined[:12]}, without a stream: {expected[:12]}"
    return None


def _same_offsets(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    joined, expected = (
        [offset for logprobs in _logprobs(call) for offset in logprobs.get("text_offset") or ()]
        for call in (chunks, [whole])
    )
    return None if joined == expected else f"offsets joined: {joined[:12]}, without a stream: {expected[:12]}"


def _same_values(chunks: Sequence[Chunk], whole: Chunk) -> str | None:
    joined, expected = _values(chunks), _values([whole])
    for place, (got, wanted) in enumerate(zip(joined, expected, strict=False)):
        if len(got) != len(wanted) or not all(map(_near, got, wanted)):
            return f"token {place} has {got}, without a stream {wanted}"
    return None if len(joined) == len(expected) else f"{len(joined)} values came, without a stream {len(expected)}"


def _values(chunks: Sequence[Chunk]) -> list[list[Json]]:
    """For each token its value and then, falling, those of its alternatives. Which come last may be a draw."""
    found: list[list[Json]] = []
    for logprobs in _logprobs(chunks):
        if "content" in logprobs:
            items = logprobs["content"] or ()
            found += [
                [item.get("logprob"), *_falling(other.get("logprob") for other in item.get("top_logprobs") or ())]
                for item in items
            ]
        else:
            made, top = logprobs.get("token_logprobs") or (), logprobs.get("top_logprobs") or ()
            found += [[value, *_falling((others or {}).values())] for value, others in zip(made, top, strict=False)]
    return found


def _falling(values: Any) -> list[Json]:
    return sorted(values, key=lambda value: (value is None, -(value or 0)))


def _near(got: Json, wanted: Json) -> bool:
    if got is None or wanted is None:
        return got is wanted
    return isclose(got, wanted, rel_tol=NEAR, abs_tol=NEAR)


def _logprobs(chunks: Sequence[Chunk]) -> list[Mapping[str, Json]]:
    return [choice["logprobs"] for choice in laws.choices(chunks) if choice.get("logprobs")]
