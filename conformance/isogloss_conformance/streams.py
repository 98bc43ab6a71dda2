"""The streams step: laws across the events of a stream, and between a stream and the same call without one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from isogloss_spec.faults import Fault

from isogloss_conformance import laws
from isogloss_conformance.call_streams import CallStreams
from isogloss_conformance.checks import Check
from isogloss_conformance.events import Recording
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.forecast import Forecaster
from isogloss_conformance.oracle import Expected, difference
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session
from isogloss_conformance.streamer import TOKENS, Streamer

Json = Any
PAUSE_MS = 40
FREE_WITHIN_S = 5.0
HELD_MS = 100
"""Pause between the tokens of a stream that would go on for twice as long."""
RUNNING = "isogloss_requests_running"


class StreamsStep:
    """One check for each law."""

    name = "streams"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._client = session.client
        self._exchange = Exchange(session)
        self._forecaster = Forecaster(session)
        self._streamer = Streamer(session)
        self._calls = CallStreams(session, self._streamer)

    def checks(self) -> list[Check]:
        """All laws."""
        return [self._check(name, sentence, look) for name, sentence, look in self._laws()]

    def _check(self, name: str, sentence: str, look: Callable[[], Outcome]) -> Check:
        return Check(f"{self._session.dialect}/streams/{name}", self.name, sentence, look, "extended", "inferred")

    def _laws(self) -> Iterator[tuple[str, str, Callable[[], Outcome]]]:
        yield "framing", "A stream is text/event-stream, and a blank line ends each event.", self._framing
        yield (
            "terminator",
            f"A stream ends with {self._streamer.terminator}, once, and nothing follows.",
            self._terminated,
        )
        yield "chunks", "Every chunk fits the schema of the document.", self._chunks
        yield "constant", "id, object, created and model are equal in all chunks of a stream.", self._constant
        yield "finish", "Each choice has one finish reason, in its last chunk.", self._finish
        yield "choices", "With n = 2 the chunks belong to choices 0 and 1.", self._two_choices
        yield "text", "The joined text is that of the same call without a stream.", self._text
        yield "logprobs", "The joined log probabilities are those of the same call without a stream.", self._logprobs
        yield "usage_unasked", "No chunk has usage unless asked for.", self._usage_unasked
        yield "usage_asked", "Usage comes once, last, without choices, and is right.", self._usage_asked
        yield "early_error", "A request that can be refused at once is a plain error, not a stream.", self._early_error
        yield "late_error", "An error after the first token is one event, then the end.", self._late_error
        yield "characters", "A character that is split over tokens arrives whole.", self._characters
        yield "stop", "A stop text never leaks, also when split over tokens.", self._stop
        yield "at_once", "Events come as tokens do, not all at the end.", self._at_once
        yield "keepalive", f"In a silence of {self._streamer.keepalive} s a comment comes.", self._comment
        yield from self._calls.laws()
        yield "hang_up", f"Closing the connection frees the slot within {FREE_WITHIN_S:g} s.", self._hang_up

    def _framing(self) -> Outcome:
        return self._streamer.judged(
            self._streamer.request(), lambda recording: None if recording.events else "no event came"
        )

    def _terminated(self) -> Outcome:
        return self._streamer.judged(
            self._streamer.request(), lambda recording: laws.terminated(recording, self._streamer.terminator)
        )

    def _chunks(self) -> Outcome:
        return self._streamer.judged(self._streamer.request(), self._streamer.misshapen)

    def _constant(self) -> Outcome:
        return self._streamer.of_chunks(self._streamer.request(), laws.constant)

    def _finish(self) -> Outcome:
        return self._streamer.of_chunks(self._streamer.request(), lambda chunks: laws.finished(chunks, 1))

    def _two_choices(self) -> Outcome:
        return self._streamer.of_chunks(
            self._streamer.request(n=2, temperature=1), lambda chunks: laws.finished(chunks, 2)
        )

    def _text(self) -> Outcome:
        whole = self._streamer.whole()
        return self._streamer.of_chunks(self._streamer.request(), lambda chunks: laws.equal_text(chunks, whole))

    def _logprobs(self) -> Outcome:
        fields: dict[str, Json] = {"logprobs": True} if "messages" in self._streamer.fields else {"logprobs": 1}
        whole = self._streamer.whole(**fields)
        return self._streamer.of_chunks(
            self._streamer.request(**fields), lambda chunks: laws.equal_logprobs(chunks, whole)
        )

    def _usage_unasked(self) -> Outcome:
        if "stream_options" not in self._streamer.fields:
            return _unprovable("the dialect has no option that asks for usage")
        return self._streamer.of_chunks(self._streamer.request(), laws.usage_unasked)

    def _usage_asked(self) -> Outcome:
        if "stream_options" not in self._streamer.fields:
            return _unprovable("the dialect has no option that asks for usage")
        whole = self._streamer.whole()
        request = self._streamer.request(stream_options={"include_usage": True})
        return self._streamer.of_chunks(request, lambda chunks: laws.usage_asked(chunks, whole))

    def _early_error(self) -> Outcome:
        request = self._streamer.request(temperature="hot")
        forecast = self._forecaster.of(json.loads(request.body))
        return self._exchange.ask(request, self._session.main, forecast)

    def _late_error(self) -> Outcome:
        if not self._session.facts.scripted:
            return _unprovable("it takes an engine that follows scripts")
        request = self._streamer.request({"tokens": ["a", "b", "c"], "fail_after": 2})
        return self._streamer.judged(request, self._misreported)

    def _misreported(self, recording: Recording) -> str | None:
        wrong = laws.failed(recording, self._streamer.terminator)
        if wrong is not None:
            return wrong
        told = recording.chunks(self._streamer.terminator)[-1]
        fault = self._session.faults.render(Fault("engine_failure"), request_hex="0" * 32)
        wrong = difference(Expected(Fault("engine_failure"), fault), fault.status, told)
        return f"the error event is not the dialect's: {wrong}" if wrong else None

    def _characters(self) -> Outcome:
        if not self._session.facts.scripted:
            return _unprovable("it takes an engine that follows scripts")
        request = self._streamer.request({"bytes_hex": ["61", "f09f", "9880", "62c3", "a9"]})
        return self._streamer.of_chunks(request, lambda chunks: laws.whole_characters(chunks, "a\U0001f600b\u00e9"))

    def _stop(self) -> Outcome:
        """The stop text is taken from the middle of what the model says anyway."""
        said = laws.text([self._streamer.whole()])
        word = said[len(said) // 2 : len(said) // 2 + 3]
        if not word:
            return _unprovable("the model says nothing")
        before = said[: said.index(word)]
        return self._streamer.of_chunks(
            self._streamer.request(stop=[word]), lambda chunks: laws.stopped(chunks, before)
        )

    def _at_once(self) -> Outcome:
        if self._session.facts.scripted:
            script = {"tokens": ["a"] * TOKENS, "delay_ms_each": PAUSE_MS}
            least = PAUSE_MS * (TOKENS // 2) / 1000
            return self._streamer.judged(
                self._streamer.request(script), lambda recording: laws.spread(recording, least)
            )
        return self._streamer.judged(
            self._streamer.request(max_tokens=32), lambda recording: laws.spread(recording, 0.001)
        )

    def _comment(self) -> Outcome:
        if self._streamer.keepalive is None:
            return _unprovable("the dialect states no interval")
        if not self._session.facts.scripted or self._session.options.patience <= self._streamer.keepalive:
            return _unprovable(f"it takes a script and a --patience above {self._streamer.keepalive}")
        request = self._streamer.request({"tokens": ["a"], "delay_ms_first": 1000 * (self._streamer.keepalive + 1)})
        return self._streamer.judged(request, lambda recording: None if recording.comments else "no comment came")

    def _hang_up(self) -> Outcome:
        if not self._session.facts.scripted or self._running() is None:
            return _unprovable(f"it takes a script and the gauge {RUNNING} at /metrics")
        tokens = int(2 * FREE_WITHIN_S * 1000 / HELD_MS)
        request = self._streamer.request({"prefer_tokens": ["a"], "delay_ms_each": HELD_MS}, max_tokens=tokens)
        before = self._running()
        self._client.record(request, events=1)
        deadline = time.monotonic() + FREE_WITHIN_S
        while time.monotonic() < deadline:
            if self._running() == before:
                return Outcome(Status.PASS, "the slot is free", f"{before} running", self._client.curl(request))
            time.sleep(0.05)
        running = f"{self._running()} running, {before} before"
        return Outcome(Status.FAIL, f"the slot is free within {FREE_WITHIN_S:g} s", running, self._client.curl(request))

    def _running(self) -> float | None:
        """Requests that the engine is busy with; None if the server does not say."""
        lines = self._client.ask_root("/metrics").content.decode("utf-8", "replace").splitlines()
        found = [line.rsplit(" ", 1)[1] for line in lines if line.startswith(RUNNING)]
        return sum(map(float, found)) if found else None


def _unprovable(reason: str) -> Outcome:
    return Outcome(Status.SKIP, got=f"unprovable: {reason}")
