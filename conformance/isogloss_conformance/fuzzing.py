"""The fuzz step: schemathesis, seeded, with the document as the judge of each answer."""

from __future__ import annotations

from isogloss_conformance.checks import Check
from isogloss_conformance.fuzz import FuzzReport, fuzz
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
        options = self._session.options
        headers = self._session.client.key_headers()
        report = fuzz(
            self._session.document,
            self._session.client.base_url,
            models=[self._session.facts.model],
            features=self._session.facts.features,
            examples=options.examples,
            seed=options.seed,
            headers=headers,
        )
        return _outcome(report)


def _outcome(report: FuzzReport) -> Outcome:
    expected = "no finding"
    if report.findings:
        first = report.findings[0]
        got = f"{len(report.findings)} findings; the first, by {first.check}: {first.message}"
        return Outcome(Status.FAIL, expected, got, first.curl)
    if report.errors:
        return Outcome(Status.ERROR, expected, report.errors[0])
    return Outcome(Status.PASS, expected, f"{report.cases} cases, {report.judged} judged by the document")
