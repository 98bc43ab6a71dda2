"""One choice of a request: which token comes next, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.engine.api import GenerationRequest
from isogloss.engine.scripted.model import TinyModel
from isogloss.engine.scripted.sampling import Sampler
from isogloss.engine.scripted.script import Script
from isogloss.engine.scripted.vocabulary import END, VOCAB_SIZE
from isogloss.engine.tokens import RawScore, Sampled, TokenEnd


class ScriptedSequence:
    """The tokens of one choice: the script's as long as there are any, else the model's.

    A script that is out ends with the end-of-text token, or with its last token if it says
    `length`. If it may not end yet (`min_tokens`, `ignore_eos`), it begins again. Scripted tokens
    stand above all sampling controls; the rules that end a choice hold for them as for any.
    """

    def __init__(
        self,
        model: TinyModel,
        request: GenerationRequest,
        choice: int,
        script: Script,
        ids: Sequence[int] | None,
        limit: int,
    ) -> None:
        self.made = 0
        """Tokens so far."""
        self.ended = False
        self._model = model
        self._choice = choice
        self._script = script
        self._ids = ids
        self._limit = limit
        self._stopping = request.stopping
        self._top = request.logprobs
        self._sampler = Sampler(request.sampling, choice, request.prompt, VOCAB_SIZE)
        self._state = model.state(request.prompt)
        self._stop_ids = self._stopping.stop_token_ids
        if not self._stopping.ignore_eos:
            self._stop_ids |= {END}

    def step(self) -> Sampled:
        """Make the next token."""
        dictated = self._dictated()
        token = self._choose() if dictated is None else dictated
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

    def _dictated(self) -> int | None:
        if self._ids is None:
            return None
        if self._is_out(self.made) and self._may_stop and not self._stopping.ignore_eos:
            return END
        return self._ids[self.made % len(self._ids)] if self._ids else None

    def _is_out(self, made: int) -> bool:
        return self._ids is not None and made >= len(self._ids) and not self._script.endless

    def _choose(self) -> int:
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
        if token in self._stop_ids and self._may_stop:
            ended_text = token == END and not self._stopping.ignore_eos
            return TokenEnd("stop", None if ended_text else token)
        if self.made + 1 >= self._limit or self._script_ends(self.made + 1):
            return TokenEnd("length")
        return None

    def _script_ends(self, made: int) -> bool:
        enough = made >= self._stopping.min_tokens
        return self._script.end == "length" and self._is_out(made) and enough
