"""How families of models mark what they think before they answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """The marks around a thought, which comes first in an answer."""

    name: str
    start: str
    end: str
    implicit: bool = False
    """Whether a thought has begun at the start of an answer even if prompt and answer show no start."""

    def begins_inside(self, prompt_tail: str) -> bool:
        """Whether an answer to a prompt that ends in this text, special tokens included, begins inside a thought."""
        tail = prompt_tail.rstrip()
        if tail.endswith(self.start):
            return True
        return self.implicit and not tail.endswith(self.end)
