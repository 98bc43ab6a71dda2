"""Media that a server must refuse for its own sake: private addresses, files outside of its folder, broken bytes.

No address leads to anybody else: they are this machine's own, link-local, of documentation, or of no scheme that is
fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isogloss_spec.document import Operation

from isogloss_conformance.client import Request, post
from isogloss_conformance.exchange import Exchange
from isogloss_conformance.faults.trap import Trap, trap
from isogloss_conformance.forecast import Forecast, Forecaster
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session

Json = Any
FIELDS = ("image_url", "video_url", "audio_url")
OWN = (
    "http://127.0.0.1:{port}/picture.png",
    "http://localhost:{port}/picture.png",
    "http://[::ffff:127.0.0.1]:{port}/picture.png",
    "http://2130706433:{port}/picture.png",
    "http://0x7f000001:{port}/picture.png",
    "http://127.1:{port}/picture.png",
    "http://somebody@127.0.0.1:{port}/picture.png",
    "http://0.0.0.0:{port}/picture.png",
)
"""Ways to write the address of this machine, which is the server's if both run here."""
ELSEWHERE = (
    "http://[::1]:9/picture.png",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fe80::1]/picture.png",
    "http://192.0.2.1/picture.png",
    "ftp://127.0.0.1/picture.png",
    "/etc/passwd",
    "file:///etc/passwd",
    "../../../../../../etc/passwd",
    "file://../../../../../../etc/passwd",
    "/proc/self/environ",
    "picture\x00.png",
    "no-such-picture.png",
    "data:image/png;base64,",
    "data:image/png;base64,!!!!",
    "data:image/png;base64,iVBORw0KGgo=",
    "data:image/svg+xml;base64,PHN2Zy8+",
    "data:image/png,plain",
)
"""Link-local, documentation's own, other schemes, files, and bytes that are no picture."""


class MediaRefusals:
    """Sends each and looks at the answer, and whether anybody fell into the trap."""

    def __init__(self, session: Session, exchange: Exchange, forecaster: Forecaster) -> None:
        self._session = session
        self._exchange = exchange
        self._forecaster = forecaster

    def outcomes(self, fault: str, operation: Operation) -> Iterator[Outcome]:
        """All of them, for the fault that must answer, in the fields that the model takes."""
        fields = [field for field in FIELDS if not self._forecast(field, "x").lacks_feature] or [FIELDS[0]]
        with trap() as laid:
            for field in fields:
                yield from (self._sent(fault, operation, field, form.format(port=laid.port)) for form in OWN)
            yield self._untouched(laid)
        yield from (self._sent(fault, operation, fields[0], address) for address in ELSEWHERE)

    def _sent(self, fault: str, operation: Operation, field: str, address: str) -> Outcome:
        found = self._forecast(field, address)
        meant = found if found.lacks_feature else Forecast(False, tuple(f for f in found.faults if f.name == fault))
        request = post(operation.path, self._body(field, address))
        answer = self._session.client.send(request)
        if answer.status != 200 and address.encode() in answer.content:
            return self._failed(request, "an error that does not repeat the address", answer.described())
        return self._exchange.judged(request, answer, operation, meant)

    def _forecast(self, field: str, address: str) -> Forecast:
        return self._forecaster.of(self._body(field, address))

    def _body(self, field: str, address: str) -> dict[str, Json]:
        content = [{"type": "text", "text": "What is this?"}, {"type": field, field: address}]
        return {**self._session.minimal, "messages": [{"role": "user", "content": content}], "max_tokens": 1}

    def _untouched(self, laid: Trap) -> Outcome:
        if laid.visits:
            return Outcome(Status.FAIL, "nobody fetches a private address", f"{laid.visits} visits")
        return Outcome(Status.PASS, "nobody fetches a private address", "no visits")

    def _failed(self, request: Request, expected: str, got: str) -> Outcome:
        return Outcome(Status.FAIL, expected, got, self._session.client.curl(request))
