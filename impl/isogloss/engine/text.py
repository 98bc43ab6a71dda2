"""The text stage: tokens of a source in, events with text out.

For each choice it keeps two promises. Text is whole characters and never a part of a stop string
that a later token completes; and each token is reported at once, even if its text must wait.

- End of text is never shown. A stop token's text is shown only with `include_stop`.
- A stop string counts if its last character comes with token number `min_tokens` or a later one; it
  may begin in earlier text. Before that, stop strings are ordinary text.
- A stop string wins over a token rule that would have ended the choice at the same token.
- The tokens of a beam search come at once when it ends, so each choice is reported as one delta.
- When a choice ends, text held back is shown, and incomplete bytes become U+FFFD.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from isogloss.engine.api import (
    Decoder,
    Delta,
    EngineFailure,
    Event,
    Finish,
    GenerationRequest,
    PromptScores,
    Started,
    Stopping,
    Tokenizer,
    TokenLogprob,
    TokenScore,
)
from isogloss.engine.stops import StopMatcher
from isogloss.engine.tokens import (
    PromptScored,
    RawScore,
    Sampled,
    TokenEnd,
    TokenEvent,
    TokenSource,
    TokenStream,
)


class TextStage:
    """Turns the tokens of a source into the events of an engine."""

    def __init__(self, tokenizer: Tokenizer, source: TokenSource) -> None:
        self._tokenizer = tokenizer
        self._source = source

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        """Events of one request; closing the generator closes the token stream.

        Errors of the source pass through: EngineRefused and EngineOverloaded at the first event,
        EngineFailure at any.
        """
        stream = self._source.open(request)
        try:
            run = _Run(self._tokenizer, request, stream)
            async for step in stream:
                for event in run.events(step):
                    yield event
                if run.done:
                    return
        finally:
            stream.close()
        raise EngineFailure("the token source ended before its choices did")


class _ChoiceText:
    """The text of one choice while it grows."""

    __slots__ = ("_count", "_decoder", "_include", "_min_tokens", "_stops", "added")

    def __init__(self, decoder: Decoder, stopping: Stopping) -> None:
        self._decoder = decoder
        self._include = stopping.include_stop
        self._min_tokens = stopping.min_tokens
        self._stops: StopMatcher | None = None
        if stopping.stop:
            self._stops = StopMatcher(stopping.stop, include=stopping.include_stop)
        self._count = 0
        self.added = ""
        """What the last token added to the text, whether it may be shown or not."""

    @property
    def stop(self) -> str | None:
        """The stop string that was found."""
        return None if self._stops is None else self._stops.matched

    def push(self, token_id: int, end: TokenEnd | None) -> str:
        """The text that may be shown after this token."""
        self._count += 1
        text = ""
        if end is None or self._shows(end):
            text = self._decoder.push(token_id)
        if end is not None:
            text += self._decoder.flush()
        self.added = text
        if self._stops is None:
            return text
        return self._checked(self._stops, text, last=end is not None)

    def _shows(self, end: TokenEnd) -> bool:
        return end.reason == "length" or end.completes or (end.stop_token is not None and self._include)

    def _checked(self, stops: StopMatcher, text: str, *, last: bool) -> str:
        shown = stops.feed(text, armed=self._count >= self._min_tokens) if text else ""
        return shown + stops.flush() if last else shown


class _Run:
    """One request on its way through the stage."""

    __slots__ = ("_choices", "_joined", "_live", "_prompt", "_scored", "_stream", "_token_text")

    def __init__(self, tokenizer: Tokenizer, request: GenerationRequest, stream: TokenStream) -> None:
        self._choices: list[_ChoiceText | None] = [
            _ChoiceText(
                tokenizer.decoder(request.prompt, skip_special_tokens=request.skip_special_tokens, marks=request.marks),
                request.stopping,
            )
            for _ in range(request.n)
        ]
        self._joined = request.beams is not None
        self._live = request.n
        self._prompt = request.prompt
        self._scored = request.logprobs is not None
        self._stream = stream
        self._token_text = tokenizer.token_text

    @property
    def done(self) -> bool:
        """Whether all choices have ended."""
        return not self._live

    def events(self, step: Sequence[TokenEvent]) -> list[Event]:
        """The events to show for those of one step."""
        shown = [event for event in map(self._event, step) if event is not None]
        return _joined(shown) if self._joined else shown

    def _event(self, event: TokenEvent) -> Event | None:
        """The event to show for a token event; None for a token behind its choice's end."""
        if isinstance(event, Sampled):
            choice = self._choices[event.choice]
            return None if choice is None else self._delta(choice, event)
        if isinstance(event, PromptScored):
            return self._prompt_scores(event)
        return Started(event.cached_tokens)

    def _delta(self, choice: _ChoiceText, sampled: Sampled) -> Delta:
        text = choice.push(sampled.token_id, sampled.end)
        scores: tuple[TokenScore, ...] = ()
        if self._scored and sampled.score is not None:
            scores = (self._score(sampled.token_id, sampled.score, choice.added),)
        finish = None
        if sampled.end is not None or choice.stop is not None:
            finish = self._finish(sampled, choice.stop)
        return Delta(sampled.choice, text, (sampled.token_id,), scores, finish)

    def _finish(self, sampled: Sampled, stop: str | None) -> Finish:
        self._choices[sampled.choice] = None
        self._live -= 1
        if stop is not None:
            self._stream.end(sampled.choice)
        timing = self._stream.timing(sampled.choice)
        if stop is not None or sampled.end is None:
            return Finish("stop", stop, timing)
        return Finish(sampled.end.reason, sampled.end.stop_token, timing)

    def _prompt_scores(self, event: PromptScored) -> PromptScores:
        return PromptScores(
            tuple(
                None if score is None else self._score(token_id, score)
                for token_id, score in zip(self._prompt, event.scores, strict=True)
            )
        )

    def _score(self, token_id: int, score: RawScore, added: str | None = None) -> TokenScore:
        text = self._token_text
        return TokenScore(
            TokenLogprob(token_id, text(token_id), score.logprob, score.rank),
            tuple(
                TokenLogprob(other, text(other), logprob, rank) for rank, (other, logprob) in enumerate(score.top, 1)
            ),
            added,
        )


def _joined(events: Sequence[Event]) -> list[Event]:
    """The same with one delta per choice, which must come whole and one after the other."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, Delta) and isinstance(last, Delta) and last.choice == event.choice:
            joined[-1] = replace(
                event,
                text=last.text + event.text,
                token_ids=last.token_ids + event.token_ids,
                scores=last.scores + event.scores,
            )
        else:
            joined.append(event)
    return joined
