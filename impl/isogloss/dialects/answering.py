"""One completion call while it is answered, up to what each dialect makes of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from isogloss_spec.faults import Fault
from typing_extensions import TypedDict

from isogloss.dialects.completions import Choice, Completion, Fragment, Tally
from isogloss.dialects.echo import echo_logprobs, echo_text
from isogloss.dialects.engine_call import run
from isogloss.dialects.guides import Guided
from isogloss.dialects.logprobs import Form, Logprobs, PromptLogprob, prompt_logprobs
from isogloss.dialects.prompts import Prompt
from isogloss.engine.api import Delta, Engine, Event, Finish, GenerationRequest, Sampling, Started, Stopping, TokenScore

Scores = tuple[TokenScore | None, ...]
PromptLogprobs = list[dict[str, PromptLogprob] | None]


_MANY_FIGURES = 4096
"""Figures about prompt tokens from which on writing them down would keep other requests waiting."""


class Head(TypedDict, closed=True):
    """What an answer and all its chunks begin with."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call asks for, in no dialect's words."""

    sampling: Sampling
    stopping: Stopping
    n: int = 1
    """Choices to return per prompt."""
    best_of: int | None = None
    """Choices to generate per prompt; None and less than `n` mean `n`. More are not for streams."""
    echo: bool = False
    form: Form | None = None
    """How to show log probabilities of the completion and an echoed prompt; None for none."""
    prompt_logprobs: int | None = None
    """Alternatives to show per token of the prompt; None for nothing."""
    skip_special_tokens: bool = True
    priority: int = 0
    guided: Guided | None = None
    hints: Mapping[str, str] = field(default_factory=dict)

    @property
    def candidates(self) -> int:
        """Choices to generate per prompt."""
        return max(self.n, self.best_of or 0)

    @property
    def logprobs(self) -> int | None:
        """Alternatives that the engine must report per generated token; candidates are compared by their scores."""
        if self.form is None:
            return 0 if self.candidates > self.n else None
        return self.form.alternatives

    @property
    def prompt_scores(self) -> int | None:
        """Alternatives that the engine must report per token of the prompt; None if the answer needs none."""
        wanted = [self.prompt_logprobs, self.form.alternatives if self.echo and self.form is not None else None]
        return max((count for count in wanted if count is not None), default=None)

    def request(self, request_id: str, prompt: Sequence[int], adapter: str | None = None) -> GenerationRequest:
        """What the engine is asked for one prompt."""
        return GenerationRequest(
            request_id=request_id,
            prompt=prompt,
            stopping=self.stopping,
            sampling=self.sampling,
            n=self.candidates,
            guide=None if self.guided is None else self.guided.guide,
            logprobs=self.logprobs,
            prompt_logprobs=self.prompt_scores,
            adapter=adapter,
            skip_special_tokens=self.skip_special_tokens,
            priority=self.priority,
            hints=self.hints,
        )


@dataclass(frozen=True, slots=True)
class Whole:
    """A choice that is complete."""

    index: int
    text: str
    logprobs: Logprobs | None
    finish: Finish
    token_ids: tuple[int, ...]
    prompt: Sequence[int]
    prompt_logprobs: PromptLogprobs | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What one chunk of a stream says."""

    fragment: Fragment | None
    """None in the chunk that says the usage of the whole request."""
    usage: Tally | None
    """To be read before the next piece is asked for: it goes on counting."""


class Answering:
    """Asks the engine and gathers what it says. Raises Fault `engine_refused`, `overloaded`, `engine_failure` or that
    of a guide."""

    def __init__(self, engine: Engine, prompts: Sequence[Prompt], wanted: Wanted, model: str | None = None) -> None:
        """`model` is the name that the call used; without one it is the engine's."""
        self._engine = engine
        self._prompts = prompts
        self._wanted = wanted
        self._scores: dict[int, Scores] = {}
        """Scores of the prompts by position, where the engine was asked for them."""
        self._completion = Completion([len(prompt.tokens) for prompt in prompts], wanted.candidates, wanted.form)
        self.head: Head = {
            "id": f"cmpl-{os.urandom(16).hex()}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model or engine.card.name,
        }

    @property
    def tally(self) -> Tally:
        """Tokens so far."""
        return self._completion.tally

    def prompt(self, index: int) -> Sequence[int]:
        """Token ids of the prompt that the choice with this index continues."""
        return self._prompts[index // self._wanted.n].tokens

    async def whole(self) -> list[Whole]:
        """All choices, complete, in the order of their indices."""
        async with aclosing(self._events()) as events:
            async for position, event in events:
                await self._add(position, event)
        best = [
            choice
            for position in range(len(self._prompts))
            for choice in self._completion.best_of_prompt(position, self._wanted.n)
        ]
        shown = [await self._prompt_logprobs(position) for position in range(len(self._prompts))]
        return [self._ended(index, choice, shown[index // self._wanted.n]) for index, choice in enumerate(best)]

    async def pieces(self, *, usage: bool, usage_so_far: bool = False) -> AsyncGenerator[Piece, None]:
        """One piece per event of the engine that shows something, then the usage if asked for."""
        async with aclosing(self._events()) as events:
            async for position, event in events:
                for choice in await self._add(position, event):
                    fragment = choice.take()
                    if fragment is not None:
                        yield Piece(fragment, self.tally if usage_so_far else None)
        if usage:
            yield Piece(None, self.tally)

    def _events(self) -> AsyncGenerator[tuple[int, Event], None]:
        adapter = self._engine.card.adapter(self.head["model"])
        requests = [
            self._wanted.request(f"{self.head['id']}-{position}", prompt.tokens, adapter)
            for position, prompt in enumerate(self._prompts)
        ]
        return run(self._engine, requests, self._wanted.guided)

    async def _add(self, position: int, event: Event) -> Sequence[Choice]:
        """Take in an event; the choices that grew by it."""
        if isinstance(event, Delta):
            return (self._completion.add(position, event),)
        if isinstance(event, Started):
            self.tally.cached_tokens += event.cached_tokens
            return () if self._wanted.prompt_scores is not None else await self._open(position, ())
        self._scores[position] = event.scores
        return await self._open(position, event.scores)

    async def _open(self, position: int, scores: Scores) -> Sequence[Choice]:
        """Let the choices of a prompt begin with it, if it is to be echoed."""
        if not self._wanted.echo:
            return ()
        prompt, form, lists = self._prompts[position], self._wanted.form, None
        text = echo_text(prompt, self._engine.tokenizer)
        if form is not None:
            lists = await echo_logprobs(prompt, text, scores, self._engine.tokenizer, form)
        choices = self._completion.of_prompt(position)
        for choice in choices:
            choice.open(text, lists)
        return choices

    async def _prompt_logprobs(self, position: int) -> PromptLogprobs | None:
        """The figures of a prompt's tokens; its choices share them."""
        scores, alternatives = self._scores.get(position), self._wanted.prompt_logprobs
        if scores is None or alternatives is None:
            return None
        if len(scores) * alternatives < _MANY_FIGURES:
            return prompt_logprobs(scores, alternatives)
        return await asyncio.to_thread(prompt_logprobs, scores, alternatives)

    def _ended(self, index: int, choice: Choice, shown: PromptLogprobs | None) -> Whole:
        fragment = choice.take()
        if fragment is None or fragment.finish is None:
            raise Fault("engine_failure")
        return Whole(
            index,
            fragment.text,
            fragment.logprobs,
            fragment.finish,
            fragment.token_ids,
            self.prompt(index),
            shown,
        )
