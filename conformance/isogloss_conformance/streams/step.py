"""The streams step: laws across the events of a stream, and between a stream and the same call without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isogloss_spec.faults import Fault

from isogloss_conformance.checks import Check
from isogloss_conformance.events import Recording
from isogloss_conformance.oracle import Expected, difference
from isogloss_conformance.results import Outcome, Status, heaviest
from isogloss_conformance.session import Session
from isogloss_conformance.streams import laws
from isogloss_conformance.streams.calls import CallStreams
from isogloss_conformance.streams.early_errors import EarlyErrors
from isogloss_conformance.streams.hang_up import FREE_WITHIN_S, HangUp
from isogloss_conformance.streams.pair_laws import same_answer, same_logprobs
from isogloss_conformance.streams.pairs import PROMPTS, StreamPairs
from isogloss_conformance.streams.streamer import TOKENS, Streamer

Json = Any
PAUSE_MS = 40


class StreamsStep:
    """One check for each law."""

    name = "streams"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._streamer = Streamer(session)
        self._pairs = StreamPairs(session, self._streamer)
        self._calls = CallStreams(session, self._streamer)
        self._early = EarlyErrors(session, self._streamer)
        self._leaving = HangUp(session, self._streamer)

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
        if "continuous_usage_stats" in self._streamer.stream_options:
            yield "usage_so_far", "Every chunk has the usage so far where that is asked for.", self._usage_so_far
        yield "early_error", "A request that can be refused at once is a plain error, not a stream.", self._early.look
        yield "late_error", "An error after the first token is one event, then the end.", self._late_error
        yield "characters", "A character that is split over tokens arrives whole.", self._characters
        yield "stop", "A stop text never leaks, also when split over tokens.", self._stop
        yield "at_once", "Events come as tokens do, not all at the end.", self._at_once
        yield "keepalive", f"In a silence of {self._streamer.keepalive} s a comment comes.", self._comment
        yield from self._pairs.laws()
        yield from self._calls.laws()
        yield "hang_up", f"Closing the connection frees the slot within {FREE_WITHIN_S:g} s.", self._leaving.look

    def _framing(self) -> Outcome:
        return self._streamer.plainest(lambda recording: None if recording.events else "no event came")

    def _terminated(self) -> Outcome:
        return self._streamer.plainest(self._streamer.terminated)

    def _chunks(self) -> Outcome:
        return self._streamer.plainest(self._streamer.misshapen)

    def _constant(self) -> Outcome:
        return self._streamer.plainest(self._streamer.constant)

    def _finish(self) -> Outcome:
        return self._of_plainest(lambda chunks: laws.finished(chunks, 1))

    def _two_choices(self) -> Outcome:
        return self._streamer.of_chunks(
            self._streamer.request(n=2, temperature=1), lambda chunks: laws.finished(chunks, 2)
        )

    def _text(self) -> Outcome:
        whole = self._streamer.whole()
        return self._of_plainest(lambda chunks: laws.equal_text(chunks, whole))

    def _logprobs(self) -> Outcome:
        chat: dict[str, Json] = {"logprobs": True, "top_logprobs": 2}
        return self._pairs.held(same_logprobs, **(chat if "messages" in self._streamer.fields else {"logprobs": 2}))

    def _usage_unasked(self) -> Outcome:
        if "stream_options" not in self._streamer.fields:
            return _unprovable("the dialect has no option that asks for usage")
        return self._of_plainest(laws.usage_unasked)

    def _usage_so_far(self) -> Outcome:
        request = self._streamer.request(stream_options={"include_usage": True, "continuous_usage_stats": True})
        return self._streamer.of_chunks(request, laws.usage_so_far)

    def _of_plainest(self, law: Callable[[list[laws.Chunk]], str | None]) -> Outcome:
        return self._streamer.plainest(lambda recording: law(recording.chunks(self._streamer.terminator)))

    def _usage_asked(self) -> Outcome:
        if "stream_options" not in self._streamer.fields:
            return _unprovable("the dialect has no option that asks for usage")
        several: dict[str, Json] = {"prompt": PROMPTS} if "prompt" in self._streamer.fields else {}
        return heaviest(self._usage_of(**fields) for fields in ({}, several))

    def _usage_of(self, **fields: Json) -> Outcome:
        whole = self._streamer.whole(**fields)
        request = self._streamer.request(**fields, stream_options={"include_usage": True})
        return self._streamer.of_chunks(request, lambda chunks: laws.usage_asked(chunks, whole))

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
        stopped = self._streamer.of_chunks(
            self._streamer.request(stop=[word]), lambda chunks: laws.stopped(chunks, before)
        )
        return heaviest((stopped, *self._stop_pairs(word)))

    def _stop_pairs(self, word: str) -> Iterator[Outcome]:
        """What ended the text is told alike, and a stop text that is to be kept comes."""
        yield self._pairs.held(same_answer, stop=[word])
        if "include_stop_str_in_output" in self._streamer.fields:
            yield self._pairs.held(same_answer, stop=[word], include_stop_str_in_output=True)

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


def _unprovable(reason: str) -> Outcome:
    return Outcome(Status.SKIP, got=f"unprovable: {reason}")
