"""Streams of the operation that generates, and the same calls without a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from isogloss_spec.document import look_up, resolve
from isogloss_spec.explain import Explainer

from isogloss_conformance.client import Request, post
from isogloss_conformance.discover import script_header
from isogloss_conformance.events import Recording
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session
from isogloss_conformance.streams import laws

Json = Any
Law = Callable[[Recording], str | None]
TOKENS = 12


class Streamer:
    """Asks for short greedy streams and holds laws against what comes.

    What must hold for every stream is asked of each that comes: its form, its end, the schema of its chunks, constant
    members. What the plainest stream lacks already is said by the check that is about it, and no other check fails.
    """

    def __init__(self, session: Session) -> None:
        stream = session.main.node["responses"]["200"]["content"]["text/event-stream"]
        self.terminator: str | None = stream["x-stream"]["terminator"]
        """The data of the last event."""
        self.keepalive: float | None = stream["x-stream"]["keepalive"]
        """Seconds of silence after which a comment comes."""
        self.fields: Mapping[str, Json] = session.request_schema["properties"]
        """What a request may say, by name."""
        chunk = _chunk_schema(session.document, stream["schema"])
        self.tells_usage: bool = "usage" in resolve(session.document, chunk)["properties"]
        """Whether a chunk may have usage."""
        self.stream_options = _members(session.document, self.fields.get("stream_options", {}))
        """What a request may say about its stream."""
        self._client = session.client
        self._path = session.main.path
        self._event = Explainer(session.document, chunk)
        self._greedy: dict[str, Json] = {**session.minimal, "max_tokens": TOKENS, "temperature": 0}
        self._plainest: Recording | None = None

    def request(self, script: Json = None, **fields: Json) -> Request:
        """A call with a stream, that follows a script if there is one."""
        return post(self._path, {**self._greedy, **fields, "stream": True}, script_header(script))

    def plain(self, script: Json = None, **fields: Json) -> Request:
        """The same call without a stream."""
        return post(self._path, {**self._greedy, **fields}, script_header(script))

    def whole(self, script: Json = None, **fields: Json) -> laws.Chunk:
        """What comes without a stream; empty if no JSON object does."""
        answer = self._client.send(self.plain(script, **fields))
        return answer.json if isinstance(answer.json, dict) else {}

    def plainest(self, law: Law) -> Outcome:
        """Hold a law against the plainest stream, which is asked for once."""
        return self._judged(
            self.request(), self._recorded(), lambda recording: recording.framing() or self._held(law, recording)
        )

    def judged(self, request: Request, law: Law) -> Outcome:
        """Record a stream, and hold a law against it, and those of all streams."""

        def all_laws(recording: Recording) -> str | None:
            general = (wrong for each in self._kept if (wrong := each(recording)))
            return recording.framing() or self._held(law, recording) or next(general, None)

        return self._judged(request, self._client.record(request), all_laws)

    def _held(self, law: Law, recording: Recording) -> str | None:
        """What is wrong by a law; a stream that cannot be read for want of form is wrong, too."""
        try:
            return law(recording)
        except (AttributeError, LookupError, TypeError, ValueError):
            wrong = self.misshapen(recording)
            if wrong is None:  # the fault is ours
                raise
            return wrong

    def of_chunks(self, request: Request, law: Callable[[list[laws.Chunk]], str | None]) -> Outcome:
        """The same for a law about chunks."""
        return self.judged(request, lambda recording: law(recording.chunks(self.terminator)))

    def terminated(self, recording: Recording) -> str | None:
        """Whether the end is not as it must be, in words."""
        return laws.terminated(recording, self.terminator)

    def misshapen(self, recording: Recording) -> str | None:
        """Which chunk is not what the document declares, in words."""
        for event in recording.events:
            if event.data != self.terminator and not self._event.is_valid(event.json):
                return f"a chunk is not what the document declares: {event.data[:300]}"
        return None

    def constant(self, recording: Recording) -> str | None:
        """Which member changes from chunk to chunk, in words."""
        return laws.constant(recording.chunks(self.terminator))

    def _judged(self, request: Request, recording: Recording, law: Law) -> Outcome:
        curl = self._client.curl(request)
        if recording.trouble is not None:
            return Outcome(Status.ERROR, "a stream", recording.trouble, curl)
        if recording.status != 200:
            return Outcome(Status.FAIL, "200", f"{recording.status} {recording.content[:300]!r}", curl)
        wrong = law(recording)
        end = recording.content[-300:].decode("utf-8", "replace")
        return Outcome(Status.FAIL if wrong else Status.PASS, "a stream that keeps the law", wrong or end, curl)

    def _recorded(self) -> Recording:
        """The plainest stream; asked for again if it brought no answer."""
        if self._plainest is None or self._plainest.trouble is not None:
            self._plainest = self._client.record(self.request())
        return self._plainest

    @cached_property
    def _kept(self) -> list[Law]:
        """The laws of all streams, as far as the plainest keeps them."""
        general: tuple[Law, ...] = (self.terminated, self.misshapen, self.constant)
        return [self._unless_it_failed(law) for law in general if law(self._recorded()) is None]

    def _unless_it_failed(self, law: Law) -> Law:
        """The same law, which a stream that ends with an error need not keep."""

        def loose(recording: Recording) -> str | None:
            failed = any(map(laws.is_error, recording.chunks(self.terminator)))
            return None if failed else law(recording)

        return loose


def _members(document: Mapping[str, Json], node: Mapping[str, Json]) -> frozenset[str]:
    """Names of the members that a field may have."""
    branches = [resolve(document, branch) for branch in node.get("anyOf", [node])]
    return frozenset(name for branch in branches for name in branch.get("properties", ()))


def _chunk_schema(document: Mapping[str, Json], event: Mapping[str, Json]) -> Mapping[str, Json]:
    """The schema of a chunk: the first content of the event's data."""
    schema = look_up(document, event["$ref"][1:]) if "$ref" in event else event
    for branch in schema["properties"]["data"]["anyOf"]:
        if "contentSchema" in branch:
            found: Mapping[str, Json] = branch["contentSchema"]
            return found
    raise ValueError("the event stream's schema has no chunk")
