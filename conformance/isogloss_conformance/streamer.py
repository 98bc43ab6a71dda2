"""Streams of the operation that generates, and the same calls without a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isogloss_spec.document import look_up
from isogloss_spec.explain import Explainer

from isogloss_conformance import laws
from isogloss_conformance.client import Request, post
from isogloss_conformance.discover import script_header
from isogloss_conformance.events import Recording
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session

Json = Any
TOKENS = 12


class Streamer:
    """Asks for short greedy streams and holds laws against what comes."""

    def __init__(self, session: Session) -> None:
        stream = session.main.node["responses"]["200"]["content"]["text/event-stream"]
        self.terminator: str | None = stream["x-stream"]["terminator"]
        """The data of the last event."""
        self.keepalive: float | None = stream["x-stream"]["keepalive"]
        """Seconds of silence after which a comment comes."""
        self.fields: Mapping[str, Json] = session.request_schema["properties"]
        """What a request may say, by name."""
        self._client = session.client
        self._path = session.main.path
        self._event = Explainer(session.document, _chunk_schema(session.document, stream["schema"]))
        self._greedy: dict[str, Json] = {**session.minimal, "max_tokens": TOKENS, "temperature": 0}

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

    def judged(self, request: Request, law: Callable[[Recording], str | None]) -> Outcome:
        """Record a stream, and hold a law against it, and those of framing."""
        recording = self._client.record(request)
        curl = self._client.curl(request)
        if recording.trouble is not None:
            return Outcome(Status.ERROR, "a stream", recording.trouble, curl)
        if recording.status != 200:
            return Outcome(Status.FAIL, "200", f"{recording.status} {recording.content[:300]!r}", curl)
        wrong = recording.framing() or law(recording)
        end = recording.content[-300:].decode("utf-8", "replace")
        return Outcome(Status.FAIL if wrong else Status.PASS, "a stream that keeps the law", wrong or end, curl)

    def of_chunks(self, request: Request, law: Callable[[list[laws.Chunk]], str | None]) -> Outcome:
        """The same for a law about chunks."""
        return self.judged(request, lambda recording: law(recording.chunks(self.terminator)))

    def misshapen(self, recording: Recording) -> str | None:
        """Which chunk is not what the document declares, in words."""
        for event in recording.events:
            if event.data != self.terminator and not self._event.is_valid(event.json):
                return f"a chunk is not what the document declares: {event.data[:300]}"
        return None


def _chunk_schema(document: Mapping[str, Json], event: Mapping[str, Json]) -> Mapping[str, Json]:
    """The schema of a chunk: the first content of the event's data."""
    schema = look_up(document, event["$ref"][1:]) if "$ref" in event else event
    for branch in schema["properties"]["data"]["anyOf"]:
        if "contentSchema" in branch:
            found: Mapping[str, Json] = branch["contentSchema"]
            return found
    raise ValueError("the event stream's schema has no chunk")
