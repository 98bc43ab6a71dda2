"""Fuzzing with schemathesis, seeded, where one check asks the document what the answer should be.

schemathesis makes the bodies and checks answers against the response schemas; our check adds what it cannot know:
cross-field rules, the class of an error, its type and param.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import NonFatalError, ScenarioFinished

from isogloss_conformance.client import Request
from isogloss_conformance.curl import command
from isogloss_conformance.oracle import Oracle, difference

Json = Any
LARGEST = {"max_tokens": 4, "n": 3, "min_tokens": 4}
"""What a fuzzed request may ask for at most, so that a real model is not kept busy."""
WORK = "max_tokens"
_RUN = "x-conformance-run"
_MADE = frozenset({"host", "connection", "content-length", "x-schemathesis-testcaseid"})
"""Headers that each program makes for itself."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer that is not what the document says."""

    operation: str
    check: str
    message: str
    request: Request
    """Its path is what stands behind the base URL; without the headers that go with every request."""
    keyed: bool
    """Whether the key went with it."""

    @property
    def curl(self) -> str:
        """The request in short, for people who know the server."""
        return command(self.request.method, self.request.path, self.request.headers, self.request.body)


@dataclass(slots=True)
class FuzzReport:
    """What one run sent and found."""

    cases: int = 0
    judged: int = 0
    """Cases whose expected answer the document gave."""
    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Troubles of the run itself."""


@dataclass(frozen=True, slots=True)
class Transport:
    """How to reach the server."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request, the key's among them."""
    keyed: bool = False
    """Whether they have a key."""
    timeout: float = 60.0
    """Seconds."""
    authorities: str | None = None
    """File with certificates of authorities to trust."""
    certificate: str | None = None
    """File with our certificate and its key."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run in progress."""

    oracle: Oracle
    amounts: Mapping[str, int]
    """What to fill in where a request names no amount: the server would take what it can, which may be a lot."""
    key: str | None
    """The header that carries the key; None without one."""


_RUNS: dict[int, _Run] = {}
"""By the number that the fuzzed copy of the document carries."""


def _run_of(case: Any) -> _Run | None:
    return _RUNS.get(case.operation.schema.raw_schema.get(_RUN, -1))


@schemathesis.hook
def before_call(ctx: Any, case: Any, kwargs: Any) -> None:
    """Keep a real model's answer short; go to the server itself, whatever proxy the environment names."""
    run = _run_of(case)
    if run is not None:
        kwargs["proxies"] = dict.fromkeys(("http", "https"), "")
    if run is not None and isinstance(case.body, dict):
        missing = {name: amount for name, amount in run.amounts.items() if case.body.get(name) is None}
        case.body = {**case.body, **missing}


@schemathesis.check
def document_oracle(ctx: Any, response: Any, case: Any) -> None:
    """The answer is the one that the document gives for this body."""
    run = _run_of(case)
    request = response.request
    if run is None or not _is_json(request.headers.get("Content-Type", "")):
        return
    if run.key not in (None, request.headers.get("Authorization")):  # left out on purpose, to see it refused
        return
    expected = run.oracle.expect(request.method, case.operation.path, _raw(request.body))
    if expected is None:
        return
    wrong = difference(expected, response.status_code, _json(response))
    if wrong:
        raise AssertionError(wrong)


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


def _raw(body: Json) -> bytes:
    return body if isinstance(body, bytes) else str(body or "").encode()


def _json(response: Any) -> Json:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None


def fuzz(
    document: Mapping[str, Json],
    base_url: str,
    *,
    models: list[str],
    features: Container[str] | None = None,
    examples: int = 100,
    seed: int = 1,
    transport: Transport = Transport(),
) -> FuzzReport:
    """Fuzz every operation of a document at a server. The same seed sends the same requests."""
    run = len(_RUNS)
    _RUNS[run] = _Run(
        Oracle(document, models=models, features=features), _endless(document), transport.headers.get("Authorization")
    )
    try:
        schema = schemathesis.openapi.from_dict(
            _copy(document, models[0], run, keyed=transport.keyed),
            config=_config(base_url, examples, seed, transport),
        )
        report = FuzzReport()
        sent = _Sent(base_url, transport.headers)
        with _collapses(report):
            for event in from_schema(schema).execute():
                _take(event, report, sent)
        return report
    finally:
        del _RUNS[run]


@contextmanager
def _collapses(report: FuzzReport) -> Iterator[None]:
    """A worker of schemathesis that dies over an answer must not look like a run without findings."""
    usual = threading.excepthook
    threading.excepthook = lambda died: report.errors.append(f"the run broke off: {died.exc_type.__name__}")
    try:
        yield
    finally:
        threading.excepthook = usual


def _copy(document: Mapping[str, Json], model: str, run: int, *, keyed: bool) -> dict[str, Json]:
    """A copy to draw bodies from: a served model, small amounts of work. The judge keeps the original."""
    copied: dict[str, Json] = copy.deepcopy(dict(document))
    copied[_RUN] = run
    copied["servers"] = [{"url": "/"}]
    for schema in copied["components"]["schemas"].values():
        _bound(schema, model)
    if not keyed:  # a server without keys lets every call in
        copied.pop("security", None)
    return copied


def _bound(schema: dict[str, Json], model: str) -> None:
    properties = schema.get("properties", {})
    for node in properties.values():
        if node.get("x-served") == "model":
            node["enum"] = [model]
    if "x-rules" in schema:
        for name in LARGEST.keys() & properties.keys():
            properties[name]["maximum"] = LARGEST[name]


def _endless(document: Mapping[str, Json]) -> dict[str, int]:
    """Amounts of fields whose defaults depend on the server, or do on a wrong one."""
    nodes = [node for schema in document["components"]["schemas"].values() for node in _properties(schema)]
    return {name: LARGEST[name] for name, node in nodes if name == WORK or (name in LARGEST and "x-computed" in node)}


def _properties(schema: Mapping[str, Json]) -> Iterable[tuple[str, Mapping[str, Json]]]:
    return schema.get("properties", {}).items() if "x-rules" in schema else ()


def _config(base_url: str, examples: int, seed: int, transport: Transport) -> SchemathesisConfig:
    certificate = {"request-cert": transport.certificate} if transport.certificate else {}
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "base-url": base_url,
            "continue-on-failure": True,
            "headers": dict(transport.headers),
            "request-timeout": transport.timeout,
            "max-redirects": 0,
            "tls-verify": transport.authorities or True,
            **certificate,
            # Otherwise every key with "token" in its name, such as max_tokens, is blacked out.
            "output": {"sanitization": {"enabled": False}},
            # Our check says the same by the document: with its rules, and without the lowered bounds of the copy.
            "checks": {"positive_data_acceptance": {"enabled": False}, "negative_data_rejection": {"enabled": False}},
            "generation": {"max-examples": examples, "deterministic": True, "database": "none"},
            "phases": {"stateful": {"enabled": False}},
        }
    )


def _take(event: Any, report: FuzzReport, sent: _Sent) -> None:
    if isinstance(event, NonFatalError):
        report.errors.append(str(event.info))
    elif isinstance(event, ScenarioFinished):
        for case_id, checks in event.recorder.checks.items():
            report.cases += 1
            report.judged += any(check.name == "document_oracle" for check in checks)
            report.findings.extend(_findings(event.label or "", checks, event.recorder.interactions[case_id], sent))


def _findings(label: str, checks: Any, interaction: Any, sent: _Sent) -> Iterator[Finding]:
    for check in checks:
        if check.failure_info is not None:
            failure = check.failure_info.failure
            message = ": ".join(filter(None, (failure.title, failure.message)))
            yield Finding(label, check.name, message, *sent.request(interaction.request))


@dataclass(frozen=True, slots=True)
class _Sent:
    """What goes with every request."""

    base_url: str
    headers: Mapping[str, str]

    def request(self, made: Any) -> tuple[Request, bool]:
        """A request of schemathesis as one of ours, and whether the key went with it."""
        headers = {name: values[0] for name, values in made.headers.items()}
        known = {name.lower() for name, value in self.headers.items() if headers.get(name) == value}
        own = {name: value for name, value in headers.items() if name.lower() not in known | _MADE}
        return Request(
            made.method, made.uri.removeprefix(self.base_url), made.body or b"", own
        ), "authorization" in known
