"""The judge: says of a request what the document says of it.

Server and suite ask the same judge. The order of the first fault is fixed: malformed body, unknown field, missing
field, wrong type, out of range (by property order), unknown model, rules of stage `request` in list order,
unsupported feature, rules of stage `prompt`.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from isogloss_spec.context import Context
from isogloss_spec.document import look_up, operation, request_schema_name
from isogloss_spec.effective import Effective
from isogloss_spec.explain import Explainer
from isogloss_spec.faults import Fault, param_of, shown_name
from isogloss_spec.features import Features
from isogloss_spec.parse import parse
from isogloss_spec.rules import Expression, Rule, RuleList
from isogloss_spec.types import Document, Json


@dataclass(frozen=True, slots=True)
class Verdict:
    """A body that passed, as sent and with its defaults filled in."""

    body: dict[str, Json]
    eff: dict[str, Json]


class Judge:
    """Judges the bodies of one operation.

    `models` are the names that requests may use, `features` those that the engine offers; None leaves the
    question open (as the suite does, which cannot know).
    """

    def __init__(
        self,
        document: Document,
        operation_id: str,
        *,
        models: Container[str] | None = None,
        features: Container[str] | None = None,
    ) -> None:
        name = request_schema_name(document, operation(document, operation_id))
        if name is None:
            raise ValueError(f"{operation_id} takes no JSON body")
        pointer = f"/components/schemas/{name}"
        self._schema = look_up(document, pointer)
        self._most_containers: int | None = document["x-limits"].get("containers")
        self._explainer = Explainer(document, {"$ref": "#" + pointer})
        self._effective = Effective(document, self._schema)
        self._features = Features(document, self._schema)
        self._models = models
        self._offered = features
        self.rules = [Rule(entry) for entry in self._schema.get("x-rules", ())]
        self._request_rules = RuleList([rule for rule in self.rules if rule.stage == "request"])
        self._prompt_rules = RuleList([rule for rule in self.rules if rule.stage == "prompt"])
        self._computed = {
            name: Expression(node["x-computed"])
            for name, node in self._schema.get("properties", {}).items()
            if "x-computed" in node
        }
        self._served = [
            name for name, node in self._schema.get("properties", {}).items() if node.get("x-served") == "model"
        ]

    def check(self, raw: bytes) -> Verdict:
        """Judge the bytes of a body. Raises Fault."""
        return self.check_body(parse(raw, self._most_containers))

    def check_body(self, body: Json) -> Verdict:
        """Judge a parsed body. Raises Fault."""
        if not self._explainer.is_valid(body):
            violation = self._explainer.first(body)
            assert violation is not None
            raise violation.as_fault()
        body = self._effective.whole(body)
        verdict = Verdict(body, self._effective.of(body))
        self._check_model(body)
        self._request_rules.check({"self": body, "eff": verdict.eff})
        self._check_features(body)
        return verdict

    def check_prompt(self, verdict: Verdict, context: Context) -> None:
        """Judge what only shows once the prompt is tokenized. Raises Fault.

        Defaults that depend on the prompt (`x-computed`) are filled into `verdict.eff` first.
        """
        variables = {"self": verdict.body, "eff": verdict.eff, "ctx": context}
        for name, expression in self._computed.items():
            if verdict.eff[name] is None:
                verdict.eff[name] = expression.value(variables)
        self._prompt_rules.check(variables)

    def _check_model(self, body: dict[str, Json]) -> None:
        if self._models is None:
            return
        for name in self._served:
            value = body.get(name)
            if value is not None and value not in self._models:
                shown = {"model": shown_name(value)}
                raise Fault("unknown_model", param=name, path=(name,), values=shown)

    def _check_features(self, body: dict[str, Json]) -> None:
        if self._offered is None:
            return
        for feature, path in self._features.wanted(body):
            if feature not in self._offered:
                raise Fault(
                    "unsupported_feature",
                    param=param_of(path),
                    path=path,
                    values={"feature": feature},
                )
