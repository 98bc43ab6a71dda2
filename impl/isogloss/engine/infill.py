"""Fill-in-the-middle: prompts that ask for the text between two others, for models trained on it.

Such a model is known by special tokens in its vocabulary. All families below put what comes before first:

    start, text before, hole, text after, end

and then generate what belongs into the hole. Codestral, which puts it last, is not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

EncodeText = Callable[[str, bool], list[int]]
"""Text and whether to add special tokens, to token ids."""


@dataclass(frozen=True, slots=True)
class InfillFormat:
    """The special tokens of some model families."""

    start: str
    hole: str
    end: str
    stops: tuple[str, ...] = ()
    """Tokens that such a model may end its text with, beside its end-of-text tokens and those above."""
    guard: str = ""
    """A character to encode before the text after the hole, and to leave out again, where a tokenizer begins each
    text with a space of its own."""


FORMATS = (
    # Qwen2.5-Coder ends with the first three, CodeGemma with the last.
    InfillFormat(
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        ("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|file_separator|>"),
    ),
    # StarCoder, StarCoder2, Granite Code
    InfillFormat(
        *("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
        ("<fim_pad>", "<file_sep>", "<repo_name>", "<reponame>", "<filename>"),
    ),
    # SantaCoder
    InfillFormat("<fim-prefix>", "<fim-suffix>", "<fim-middle>", ("<fim-pad>",)),
    # DeepSeek-Coder
    InfillFormat("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 - its own spelling
    # Code Llama
    InfillFormat("▁<PRE>", "▁<SUF>", "▁<MID>", ("▁<EOT>",), guard="☺"),
)


class Infill:
    """Makes prompts for one tokenizer."""

    def __init__(self, form: InfillFormat, ids: Mapping[str, int], encode: EncodeText) -> None:
        """`ids` has the special tokens that the vocabulary has."""
        own = (form.start, form.hole, form.end)
        self._start, self._hole, self._end = (ids[token] for token in own)
        self._encode = encode
        self._guard = form.guard
        self.stop_ids = frozenset(ids[token] for token in (*own, *form.stops) if token in ids)
        """Tokens that end the text to be filled in."""

    def encode(self, before: str, after: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of a prompt; with special tokens it begins as any text of this tokenizer does."""
        return [
            *(self._opening() if add_special_tokens else ()),
            self._start,
            *self._encode(before, False),
            self._hole,
            *self._guarded(after),
            self._end,
        ]

    def _opening(self) -> list[int]:
        # Begin and end tokens stand around a text; only those before it are wanted.
        plain, full = self._encode("a", False), self._encode("a", True)
        places = (place for place in range(len(full)) if full[place : place + len(plain)] == plain)
        return full[: next(places, 0)]

    def _guarded(self, text: str) -> list[int]:
        guard = self._encode(self._guard, False) if self._guard else []
        tokens = self._encode(self._guard + text, False)
        return tokens[len(guard) :] if tokens[: len(guard)] == guard else self._encode(text, False)


def find_infill(vocabulary: Mapping[str, int], size: int, encode: EncodeText) -> Infill | None:
    """What the special tokens of a vocabulary allow; `size` is how many ids the model knows."""
    known = {token: token_id for token, token_id in vocabulary.items() if token_id < size}
    for form in FORMATS:
        if {form.start, form.hole, form.end} <= known.keys():
            return Infill(form, known, encode)
    return None
