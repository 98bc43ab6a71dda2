"""What keeps a server from being tested at all, and what to do about it: asked before hundreds of checks fail of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import isogloss_api
from isogloss_spec.document import look_up, request_schema_name
from isogloss_spec.faults import Fault, FaultTable
from isogloss_spec.judge import Judge

from isogloss_conformance.client import Answer, Client, Request, post
from isogloss_conformance.oracle import Expected, difference
from isogloss_conformance.session import main_operation

Json = Any
DIALECTS = tuple(name for name in isogloss_api.DOCUMENTS if name != "service")
MODELS = Request("GET", "/v1/models", headers={})
BREAKS_OFF = "it breaks connections off: is the port right, and is it http:// or https://?"
NO_CONNECTION = (
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted: --ca FILE names whom to trust"),
    ("CERTIFICATE_REQUIRED", "it wants a certificate of its callers: --cert FILE gives one"),
    ("SSL", "it may not speak TLS: try http:// in place of https://"),
    ("Connection refused", "nothing listens there: is the server running, and on this port?"),
    ("Name or service not known", "no host of this name is known: is the address spelt right?"),
    ("name resolution", "no host of this name is known: is the address spelt right?"),
    ("it took longer than", "--timeout S waits longer"),
    ("RemoteProtocolError", BREAKS_OFF),
    ("ReadError", BREAKS_OFF),
)
"""Signs in what an attempt to connect ended with, and what to do. The first that fits counts."""
NO_KEY = "it wants a key: --api-key KEY, or ISOGLOSS_CONFORMANCE_KEY in the environment"
WRONG_KEY = "it does not take the key that was given: look at --api-key and ISOGLOSS_CONFORMANCE_KEY"
NO_PATH = "nothing is there: --base-url is where the dialect's /v1 stands, without the /v1"
NO_NAME = "give --model NAME"
NO_OPERATION = "its list of models is there, this path is not: is --dialect right?"
LATER = "it has no room, or is not ready: try again later"
BROKEN = "it fails at the plainest call there is: its log may say why"
REFUSED = "it refuses the plainest call that the document allows"
NO_JSON = "that is no JSON object, maybe a web page: does --base-url lead to the API?"


class DiscoveryError(Exception):
    """The server cannot be tested as asked. The text says why and what to do."""


class Obstacles:
    """Looks at the first answers of a server. Its methods raise DiscoveryError where there is no use in going on."""

    def __init__(self, document: Mapping[str, Json], client: Client) -> None:
        self._document = document
        self._client = client
        self._main = main_operation(document)

    def reached(self, models: Answer) -> None:
        """Whether the list of models came, in whatever form."""
        if models.trouble is not None:
            raise self._error(f"{self._client.base_url} cannot be reached", models, _connecting(models.trouble), MODELS)

    def nameless(self, models: Answer) -> DiscoveryError:
        """The error for a list that names no model."""
        empty = models.status == 200 and models.json is not None
        missing = models.status in (404, 405) and self._is_there(self._main.path)
        advice = NO_NAME if empty or missing else self._advice(models, MODELS, listed=False)
        return self._error(f"GET {MODELS.path} names no model", models, advice, MODELS)

    def plain_call(self, model: str, listed: Collection[str]) -> None:
        """Whether the smallest valid body is answered with a completion; `listed` are the models that were found."""
        request = post(self._main.path, {**self._minimal(model), "max_tokens": 1})
        answer = self._client.send(request)
        if answer.trouble is not None:
            advice = _connecting(answer.trouble)
        elif answer.status == 200 and isinstance(answer.json, dict):
            return
        elif self._is_unknown_model(answer, model, listed):
            advice = f"it does not serve {model!r}: --model NAME, one of {', '.join(sorted(listed)) or 'its own'}"
        else:
            advice = self._advice(answer, request, listed=bool(listed))
        raise self._error(f"a plain POST {self._main.path} brings no completion", answer, advice, request)

    def other_dialect(self) -> str | None:
        """The dialect that an error of this server fits, if it is another than the one that is asked for."""
        answer = self._client.send(post(self._main.path, {}))
        fitting = [name for name in DIALECTS if _fits(isogloss_api.document(name), self._main.path, answer)]
        return None if self._document["x-dialect"] in fitting else next(iter(fitting), None)

    def _minimal(self, model: str) -> dict[str, Json]:
        name = request_schema_name(self._document, self._main)
        values: Mapping[str, Json] = look_up(self._document, f"/components/schemas/{name}")["x-minimal"]
        return {name: model if value == "$MODEL" else value for name, value in values.items()}

    def _is_unknown_model(self, answer: Answer, model: str, listed: Collection[str]) -> bool:
        """Whether an error is the document's own for that, or a 404 for a model that is not in the list."""
        if answer.status == 404 and listed and model not in listed:
            return True
        judge = Judge(self._document, self._main.id, models=())
        try:
            judge.check_body(self._minimal(model))
        except Fault as fault:
            wanted = FaultTable(self._document).render(fault, request_hex="0" * 32)
            return difference(Expected(fault, wanted), answer.status, answer.json) is None
        return False

    def _advice(self, answer: Answer, request: Request, *, listed: bool) -> str:
        """What to do about an answer that is no completion and no list."""
        if answer.status in (401, 403):
            return WRONG_KEY if self._client.keyed else NO_KEY
        if 300 <= answer.status < 400:
            place = answer.headers.get("location", "").removesuffix(request.path) or "another place"
            return f"it sends callers to {place}: give that as --base-url"
        if answer.status in (404, 405):
            return "; ".join((NO_OPERATION,) if listed else (NO_PATH, *self._elsewhere())) + self._other_paths()
        if answer.status in (429, 503):
            return LATER
        if answer.status < 400:
            return NO_JSON
        return BROKEN if answer.status >= 500 else REFUSED

    def _elsewhere(self) -> Iterator[str]:
        """Where else an API is found, in words."""
        for path in dict.fromkeys(self._neighbours()):
            answer = self._client.ask_root(path + MODELS.path)
            if answer.status == 200 and isinstance(answer.json, dict):
                yield f"there is an API at {self._client.root}{path}, is that it?"

    def _other_paths(self) -> str:
        """Which dialects' paths are there instead, in words; empty if none is."""
        paths = {name: main_operation(isogloss_api.document(name)).path for name in DIALECTS}
        there = {path for path in {*paths.values()} - {self._main.path} if self._is_there(path)}
        names = [name for name, path in paths.items() if path in there]
        return f"; {', '.join(sorted(there))} is there, though: try --dialect {' or '.join(names)}" if there else ""

    def _is_there(self, path: str) -> bool:
        answer = self._client.send(post(path, {}))
        return answer.status not in (0, 404, 405) and isinstance(answer.json, dict)

    def _neighbours(self) -> Iterator[str]:
        """Other places where the dialect may stand."""
        here = urlsplit(self._client.base_url).path
        yield f"{here}/{self._document['x-dialect']}"
        if here:
            yield here.rpartition("/")[0]

    def _error(self, what: str, answer: Answer, advice: str, request: Request) -> DiscoveryError:
        said = f"{what} ({answer.described()})" + (f": {advice}" if advice else "")
        return DiscoveryError(self._client.redacted(f"{said}\n     {self._client.curl(request)}"))


def _connecting(trouble: str) -> str:
    """What to do about an attempt that brought no answer."""
    return next((advice for sign, advice in NO_CONNECTION if sign in trouble), "")


def _fits(document: Mapping[str, Json], path: str, answer: Answer) -> bool:
    """Whether an answer to an empty object is what a document declares."""
    main = main_operation(document)
    if main.path != path:
        return False
    try:
        Judge(document, main.id).check_body({})
    except Fault as fault:
        wanted = FaultTable(document).render(fault, request_hex="0" * 32)
        return difference(Expected(fault, wanted), answer.status, answer.json) is None
    return False
