"""The fuzz step: schemathesis, seeded, with the document as the judge of each answer."""

from __future__ import annotations

from isogloss_conformance.checks import Check
from isogloss_conformance.client import Client, post
from isogloss_conformance.fuzz import FuzzReport, Transport, fuzz
from isogloss_conformance.results import Outcome, Status
from isogloss_conformance.session import Session


class FuzzStep:
    """One check for all operations together: what it sends is drawn, so that there is no list of cases."""

    name = "fuzz"

    def __init__(self, session: Session) -> None:
        self._session = session

    def checks(self) -> list[Check]:
        """The one check."""
        sentence = "Whatever is sent, the answer is one that the document gives."
        check_id = f"{self._session.dialect}/fuzz/all"
        return [Check(check_id, self.name, sentence, self._look, "extended", "inferred")]

    def _look(self) -> Outcome:
        session, client = self._session, self._session.client
        plain = client.send(post(session.main.path, {**session.minimal, "max_tokens": 1}))
        if plain.trouble is not None:  # thousands of bodies would fare no better
            return Outcome(Status.ERROR, "an answer to a plain call", plain.trouble)
        report = fuzz(
            session.document,
            client.base_url,
            models=[session.facts.model],
            features=session.facts.features,
            examples=session.options.examples,
            seed=session.options.seed,
            transport=Transport(client.headers(), client.keyed, client.timeout, client.authorities, client.certificate),
        )
        return _outcome(report, client)


def _outcome(report: FuzzReport, client: Client) -> Outcome:
    expected = "no finding"
    if report.findings:
        first = report.findings[0]
        got = f"{len(report.findings)} findings; the first, by {first.check}: {first.message}"
        return Outcome(Status.FAIL, expected, got, client.curl(first.request, with_key=first.keyed))
    if report.errors:
        return Outcome(Status.ERROR, expected, report.errors[0])
    return Outcome(Status.PASS, expected, f"{report.cases} cases, {report.judged} judged by the document")
