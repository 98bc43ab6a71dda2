"""One choice of a request: which token comes next, and when it ends."""

from __future__ import annotations

from isogloss.engine.api import GenerationRequest, GuideError
from isogloss.engine.guides.matcher import GuideMatcher, matcher_of
from isogloss.engine.scripted.closing import Closing, forced_phrase, unpacked
from isogloss.engine.scripted.model import TinyModel, first_state
from isogloss.engine.scripted.sampling import Sampler
from isogloss.engine.scripted.script import Script
from isogloss.engine.scripted.vocabulary import END, VOCAB_SIZE, ScriptTokens
from isogloss.engine.tokens import RawScore, Sampled, TokenEnd


class ScriptedSequence:
    """The tokens of one choice: the script's as long as there are any, else the model's.

    A script that is out ends with the end-of-text token, or with its last token if it says
    `length`. If it may not end yet (`min_tokens`, `ignore_eos`), it begins again. Scripted tokens
    stand above all sampling controls but a guide, which lets the model choose where it does not allow them;
    the rules that end a choice hold for them as for any.
    """

    def __init__(
        self,
        model: TinyModel,
        request: GenerationRequest,
        choice: int,
        script: Script,
        tokens: ScriptTokens | None,
        limit: int,
    ) -> None:
        self.made = 0
        """Tokens so far."""
        self.ended = False
        self._model = model
        self._choice = choice
        self._script = script
        self._tokens = tokens or ScriptTokens(())
        self._ids = None if tokens is None else tokens.ids
        self._limit = limit
        self._stopping = request.stopping
        self._top = request.logprobs
        self._sampler = Sampler(request.sampling, choice, request.prompt, VOCAB_SIZE)
        self._state = model.state(request.prompt, first_state(request.media))
        self._stop_ids = self._stopping.stop_token_ids
        if not self._stopping.ignore_eos:
            self._stop_ids |= {END}
        self._guide = matcher_of(request.guide, (END,) if self._stopping.ignore_eos else ())
        self._closing = Closing()

    def step(self) -> Sampled:
        """Make the next token. Raises GuideError if the guide turns out to be too much work."""
        dictated = self._dictated() if self._guide is None else self._permitted(self._guide)
        token = self._choose() if dictated is None else dictated
        if self._guide is not None:
            self._follow(self._guide, token)
        score = self._score(token, forced=dictated is not None)
        end = self._end(token)
        self.made += 1
        self.ended = end is not None
        self._state = self._model.state((token,), self._state)
        self._sampler.took(token)
        return Sampled(self._choice, token, score, end)

    @property
    def _may_stop(self) -> bool:
        return self.made >= self._stopping.min_tokens

    def _dictated(self, place: int | None = None) -> int | None:
        if self._ids is None:
            return None
        if self._is_out(self.made) and self._may_stop and not self._stopping.ignore_eos:
            return END
        place = self.made if place is None else place
        return self._ids[place % len(self._ids)] if self._ids else None

    def _is_out(self, made: int) -> bool:
        return self._ids is not None and made >= len(self._ids) and not self._script.endless

    def _permitted(self, guide: GuideMatcher) -> int | None:
        """The script's token if the guide allows it; of tokens that repeat, the first that it allows."""
        places = range(self.made, self.made + len(self._ids or ())) if self._script.endless else [self.made]
        tokens = [self._dictated(place) for place in places]
        return next((token for token in tokens if token is not None and self._permits(guide, token)), None)

    def _permits(self, guide: GuideMatcher, token: int) -> bool:
        return guide.permits(self._tokens.spelled(token))

    def _follow(self, guide: GuideMatcher, token: int) -> None:
        if token == END:
            guide.accept(token)
        else:
            guide.accept_all(self._tokens.spelled(token))
        self._closing.took(token)
        _check(guide)

    def _guided(self, guide: GuideMatcher) -> int:
        bits = guide.allowed(() if self._may_stop else self._stop_ids)
        _check(guide)
        allowed = unpacked(bits)
        phrase = forced_phrase(allowed, guide)
        if phrase is not None:
            return phrase
        logits = self._closing.raised(self._model.row(self._state), allowed, guide)
        return self._sampler.choose(logits, (), allowed)

    def _choose(self) -> int:
        if self._guide is not None:
            return self._guided(self._guide)
        forbidden = () if self._may_stop else self._stop_ids
        favourite = self._model.favourite(self._state)
        if self._sampler.takes_favourite and favourite not in forbidden:
            return favourite
        return self._sampler.choose(self._model.row(self._state), forbidden)

    def _score(self, token: int, *, forced: bool) -> RawScore | None:
        if self._top is None:
            return None
        score = self._model.forced_score if forced else self._model.score
        return score(self._state, token, self._top)

    def _end(self, token: int) -> TokenEnd | None:
        if self._guide is not None and token == END:
            return TokenEnd("stop")
        if token in self._stop_ids and self._may_stop:
            ended_text = token == END and not self._stopping.ignore_eos
            return TokenEnd("stop", None if ended_text else token)
        last = self.made + 1 >= self._limit
        if self._guide is not None and (self._guide.finished() if last else self._guide.complete):
            return TokenEnd("stop", completes=True)
        if last or self._script_ends(self.made + 1):
            return TokenEnd("length")
        return None

    def _script_ends(self, made: int) -> bool:
        enough = made >= self._stopping.min_tokens
        return self._script.end == "length" and self._is_out(made) and enough


def _check(guide: GuideMatcher) -> None:
    if guide.failed:
        raise GuideError("too_complex")
