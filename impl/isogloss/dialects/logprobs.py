"""Log probabilities in the form of completions: four lists of equal length.

A token is named by the text that it added to its choice, so that names join to the text and each offset is the
offset before it plus the length of the name before it:

- A token that added no text, such as part of a character or the end-of-text token, is named "". It is listed
  all the same: clients drop the last entry of an echoed prompt with one generated token, whatever that token was.
- What a stop string cut off names nothing: a token that lies behind the cut is named "", one that lies across it
  by the part that stayed. (vLLM keeps both whole, so its names run past the text.)
- Alternatives are named by themselves, the chosen token among them as in the list of tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from isogloss.dialects.due_tokens import DueTokens
from isogloss.engine.api import TokenLogprob, TokenScore

LOWEST = -9999.0
"""Stands for minus infinity, which JSON cannot say; the value is vLLM's."""


class Logprobs(TypedDict, closed=True):
    """Four lists, one entry per token; the first token of a prompt has neither value nor alternatives."""

    text_offset: list[int]
    token_logprobs: list[float | None]
    tokens: list[str]
    top_logprobs: list[dict[str, float] | None]


class PromptLogprob(TypedDict, closed=True):
    """The figures of one candidate at one place of the prompt."""

    logprob: float
    rank: int
    decoded_token: str


@dataclass(frozen=True, slots=True)
class Form:
    """How a call wants log probabilities shown."""

    alternatives: int
    """Most likely tokens per place; the chosen token comes on top of them."""
    as_ids: bool = False
    """Whether tokens are named `token_id:<id>`."""

    def name(self, token_id: int, text: str) -> str:
        """A token's name in the lists."""
        return f"token_id:{token_id}" if self.as_ids else text

    def top(self, score: TokenScore, text: str) -> dict[str, float]:
        """The alternatives by name, most likely first. Parts of characters look alike as text: the chosen token keeps
        its name, and of the others all but the most likely with a name go by `token_id:<id>`."""
        chosen, name = score.chosen, self.name(score.chosen.id, text)
        values: dict[str, float] = {}
        for other in score.top[: self.alternatives]:
            own = name if other.id == chosen.id else self.name(other.id, other.text)
            taken = other.id != chosen.id and (own == name or own in values)
            values[f"token_id:{other.id}" if taken else own] = finite(other.logprob)
        values.setdefault(name, finite(chosen.logprob))
        return values


class LogprobWriter:
    """The lists of one choice while it grows."""

    __slots__ = ("_due", "_echoed", "_form")

    def __init__(self, form: Form) -> None:
        self._echoed: Logprobs | None = None
        """Lists of an echoed prompt that were not taken yet; other choices share them."""
        self._form = form
        self._due = DueTokens()

    def open(self, echoed: Logprobs, offset: int) -> None:
        """Begin with the lists of an echoed prompt of so many characters; before anything is added."""
        self._echoed, self._due = echoed, DueTokens(offset)

    def add(self, scores: Iterable[TokenScore]) -> None:
        """Take in the scores of new tokens."""
        self._due.add(scores)

    def take(self, shown: int, *, last: bool) -> Logprobs:
        """The tokens whose text lies within the first `shown` characters; at last all of them."""
        lists = no_logprobs()
        for token in self._due.take(shown, last=last):
            _append(lists, self._form, token.score, token.text, token.offset)
        echoed, self._echoed = self._echoed, None
        return lists if echoed is None else joined(echoed, lists)


def finite(logprob: float) -> float:
    """The log probability as JSON can say it."""
    return logprob if logprob > LOWEST else LOWEST


def no_logprobs() -> Logprobs:
    """Four empty lists."""
    return {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": []}


def joined(before: Logprobs, after: Logprobs) -> Logprobs:
    """The lists of two texts that follow each other."""
    return {
        "text_offset": before["text_offset"] + after["text_offset"],
        "token_logprobs": before["token_logprobs"] + after["token_logprobs"],
        "tokens": before["tokens"] + after["tokens"],
        "top_logprobs": before["top_logprobs"] + after["top_logprobs"],
    }


def of_prompt(tokens: Sequence[int], texts: Sequence[str], scores: Sequence[TokenScore | None], form: Form) -> Logprobs:
    """The lists of an echoed prompt; `texts` are what its tokens add to the text that is shown of it."""
    lists = no_logprobs()
    offset = 0
    for token_id, text, score in zip(tokens, texts, scores, strict=True):
        if score is None:
            _append_unscored(lists, form.name(token_id, text), offset)
        else:
            _append(lists, form, score, text, offset)
        offset += len(text)
    return lists


def prompt_logprobs(scores: Sequence[TokenScore | None], alternatives: int) -> list[dict[str, PromptLogprob] | None]:
    """vLLM's form for the prompt's tokens: token id to figures, the actual token first; null for the first."""
    return [
        None
        if score is None
        else {str(token.id): _figures(token) for token in (score.chosen, *score.top[:alternatives])}
        for score in scores
    ]


def _figures(token: TokenLogprob) -> PromptLogprob:
    return {"logprob": finite(token.logprob), "rank": token.rank, "decoded_token": token.text}


def _append(lists: Logprobs, form: Form, score: TokenScore, text: str, offset: int) -> None:
    lists["text_offset"].append(offset)
    lists["token_logprobs"].append(finite(score.chosen.logprob))
    lists["tokens"].append(form.name(score.chosen.id, text))
    lists["top_logprobs"].append(form.top(score, text))


def _append_unscored(lists: Logprobs, name: str, offset: int) -> None:
    lists["text_offset"].append(offset)
    lists["token_logprobs"].append(None)
    lists["tokens"].append(name)
    lists["top_logprobs"].append(None)
