"""Finds out what a server serves, so that nobody has to say it: models, context length, features."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from isogloss_spec.document import look_up, request_schema_name
from isogloss_spec.faults import Fault, FaultTable, param_of
from isogloss_spec.features import Features
from isogloss_spec.judge import Judge
from isogloss_spec.ledger import ledger
from isogloss_spec.pairs import NoPair, Pairs
from isogloss_spec.types import Path

from isogloss_conformance.client import Answer, Client, post
from isogloss_conformance.obstacles import MODELS, Obstacles
from isogloss_conformance.oracle import Expected, difference
from isogloss_conformance.session import Facts, main_operation

Json = Any
SCRIPT = "X-Isogloss-Script"


@dataclass(frozen=True, slots=True)
class _Probe:
    """A body that uses one feature with effect, and no other."""

    feature: str
    path: Path
    body: Json


def discover(
    document: Mapping[str, Json],
    client: Client,
    *,
    model: str | None = None,
    context_length: int | None = None,
    features: frozenset[str] | None = None,
) -> Facts:
    """Ask the server what was not said. Raises DiscoveryError."""
    obstacles = Obstacles(document, client)
    models = client.send(MODELS)
    obstacles.reached(models)
    entry = _entry(models, model)
    name = model or _text(entry, "id")
    if name is None:
        raise obstacles.nameless(models)
    obstacles.plain_call(name, [text for found in _entries(models) if (text := _text(found, "id"))])
    prober = _Prober(document, client, name)
    found = prober.features() if features is None else features
    length = context_length or _count(entry.get("max_model_len"))
    return Facts(name, length, found, prober.is_scripted(), models.headers.get("server", ""))


def features_of(document: Mapping[str, Json]) -> frozenset[str]:
    """All features that some field of the document needs."""
    return frozenset(feature for entry in ledger(document) for feature in entry.features)


def _entry(answer: Answer, model: str | None) -> Mapping[str, Json]:
    """What the list says of the model; of the first one if none was named."""
    return next((entry for entry in _entries(answer) if model is None or entry.get("id") == model), {})


def _entries(answer: Answer) -> list[Mapping[str, Json]]:
    """All that the list says, as far as it is one."""
    listed = answer.json.get("data") if isinstance(answer.json, dict) else None
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _text(entry: Mapping[str, Json], name: str) -> str | None:
    """A text that can be sent again: half of a surrogate pair cannot."""
    value = entry.get(name)
    return value if isinstance(value, str) and value.isprintable() else None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def script_header(script: Json) -> dict[str, str]:
    """The header that makes an engine follow a script; none without a script."""
    return {} if script is None else {SCRIPT: base64.b64encode(json.dumps(script).encode()).decode()}


class _Prober:
    """Uses each feature once and looks whether the server says that it has none."""

    def __init__(self, document: Mapping[str, Json], client: Client, model: str) -> None:
        self._document = document
        self._client = client
        self._operation = main_operation(document)
        self._pairs = Pairs(document, self._operation.id, model=model)
        self._judge = Judge(document, self._operation.id)
        self._faults = FaultTable(document)
        name = request_schema_name(document, self._operation)
        self._features = Features(document, look_up(document, f"/components/schemas/{name}"))

    def features(self) -> frozenset[str]:
        """Features that the server did not refuse as such."""
        return frozenset(probe.feature for probe in probes(self._bodies(), self._features) if self._has(probe))

    def _bodies(self) -> Iterator[Json]:
        for entry in ledger(self._document):
            if entry.kind == "rule" or entry.features:
                try:
                    yield from map(self._small, self._pairs.of(entry).accept)
                except NoPair:
                    continue

    def _small(self, body: Json) -> Json:
        """The same for one token: a refusal for the sake of `max_tokens` may look like one of the feature."""
        smaller = {**body, "max_tokens": 1}
        try:
            self._judge.check_body(smaller)
        except Fault:
            return body
        return smaller

    def _has(self, probe: _Probe) -> bool:
        values = {"feature": probe.feature}
        fault = Fault("unsupported_feature", param=param_of(probe.path), path=probe.path, values=values)
        answer = self._client.send(post(self._operation.path, probe.body))
        wanted = self._faults.render(fault, request_hex="0" * 32)
        return difference(Expected(fault, wanted), answer.status, answer.json) is not None

    def is_scripted(self) -> bool:
        """Whether a broken script is refused: only an engine that follows scripts looks at it."""
        if "engine_refused" not in self._faults:
            return False
        body = {**self._pairs.minimal, "max_tokens": 1}
        answer = self._client.send(post(self._operation.path, body, script_header([])))
        return answer.status == self._faults.status("engine_refused")


def probes(bodies: Iterator[Json], features: Features) -> list[_Probe]:
    """For each feature the first body that uses it and no other."""
    found: dict[str, _Probe] = {}
    for body in bodies:
        wanted = list(features.wanted(body))
        if len({feature for feature, _ in wanted}) == 1:
            feature, path = wanted[0]
            found.setdefault(feature, _Probe(feature, path, body))
    return list(found.values())
