"""Laws of streams with calls and thoughts, for dialects that have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.functions import AT_ONCE, ENOUGH, THOUGHT, TOOLS, TWO_CALLS
from isogloss_conformance.results import Outcome, Status, heaviest
from isogloss_conformance.session import Session
from isogloss_conformance.streams import call_laws
from isogloss_conformance.streams.laws import Chunk
from isogloss_conformance.streams.streamer import Streamer

Json = Any
CUT = 16
"""Tokens after which a scripted call is cut."""


class CallStreams:
    """One law for each thing that can go wrong between a stream and the same call without one."""

    def __init__(self, session: Session, streamer: Streamer) -> None:
        self._session = session
        self._streamer = streamer
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)

    def laws(self) -> Iterator[tuple[str, str, Callable[[], Outcome]]]:
        """Names, sentences and looks."""
        if "tools" in self._streamer.fields:
            yield "tool_calls", "Joined parts of calls are the calls of the same call without a stream.", self._calls
            yield "tool_finish", "An answer that ends by itself with calls ends so in name, and no other.", self._ends
        if "chat_template_kwargs" in self._streamer.fields:
            yield "reasoning", "Joined thoughts are those of the same call without a stream.", self._thoughts

    def _calls(self) -> Outcome:
        if not self._session.facts.scripted:
            return self._with_tools(None, call_laws.equal_calls, tool_choice="required")
        scripts: list[Json] = [TWO_CALLS, {**TWO_CALLS, "chunk": 3}, {**TWO_CALLS, "one_delta": True}]
        scripts.append({**TWO_CALLS, "truncate_tokens": CUT})
        return heaviest(self._with_tools(script, call_laws.equal_calls) for script in scripts)

    def _ends(self) -> Outcome:
        if not self._session.facts.scripted:
            return self._ending(None, None, tool_choice="required")
        endings = [(TWO_CALLS, "tool_calls"), ({**TWO_CALLS, "truncate_tokens": CUT}, "length")]
        endings.append(({"tokens": ["Well", " now"]}, "stop"))
        return heaviest(self._ending(script, wanted) for script, wanted in endings)

    def _ending(self, script: Json, wanted: str | None, **fields: Json) -> Outcome:
        def law(chunks: list[Chunk], whole: Chunk) -> str | None:
            wrong = call_laws.ended([whole], wanted)
            return call_laws.ended(chunks, wanted) if wrong is None else f"without a stream: {wrong}"

        return self._with_tools(script, law, **fields)

    def _with_tools(self, script: Json, law: Callable[[list[Chunk], Chunk], str | None], **fields: Json) -> Outcome:
        """Hold a law against a stream and the same call without one, which must be good by itself."""
        fields = {"tools": TOOLS, "max_tokens": ENOUGH, **AT_ONCE, **fields}
        plain = self._streamer.plain(script, **fields)
        answer = self._session.client.send(plain)
        forecast = self._forecaster.of(json.loads(plain.body))
        outcome = self._exchange.judged(plain, answer, self._session.main, forecast)
        if outcome.status is not Status.PASS:
            return outcome
        if call_laws.only_thinks(answer.json):
            return Outcome(Status.SKIP, got="unprovable: the model thinks until it is cut")
        request = self._streamer.request(script, **fields)
        return self._streamer.of_chunks(request, lambda chunks: law(chunks, answer.json))

    def _thoughts(self) -> Outcome:
        script = THOUGHT if self._session.facts.scripted else None
        fields: dict[str, Json] = {"max_tokens": ENOUGH, "chat_template_kwargs": {"enable_thinking": True}}
        whole = self._streamer.whole(script, **fields)
        if not any((choice.get("message") or {}).get("reasoning_content") for choice in whole.get("choices") or ()):
            return Outcome(Status.SKIP, got="unprovable: the model shows no thoughts")
        request = self._streamer.request(script, **fields)
        return self._streamer.of_chunks(request, lambda chunks: call_laws.equal_thoughts(chunks, whole))
