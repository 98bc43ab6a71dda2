"""Rules that compare fields (`x-rules`), compiled from the document and evaluated with CEL."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from typing import Literal

from cel_expr_python import cel

from isogloss_spec.faults import Fault, fill
from isogloss_spec.types import Json

Stage = Literal["request", "prompt"]

_READS = re.compile(r"\b(self|eff|ctx)\.(\w+)")
_INT64 = 2**63


class RuleError(Exception):
    """A rule could not be compiled, or gave something else than true or false: the document is wrong."""


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_int64(text: str) -> bool:
    return -_INT64 <= int(text) < _INT64


_ANY_MAP = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
_ENVIRONMENT = cel.NewEnv(
    variables={"self": _ANY_MAP, "eff": _ANY_MAP, "ctx": _ANY_MAP},
    functions=[
        cel.FunctionDecl(name, [cel.Overload(f"{name}_string", cel.Type.BOOL, [cel.Type.STRING])])
        for name in ("isJsonObject", "isInt64")
    ],
    function_impls={"isJsonObject_string": _is_json_object, "isInt64_string": _is_int64},
)


class Expression:
    """One CEL expression and the fields it reads. Only those are handed to CEL, which copies them."""

    def __init__(self, text: str) -> None:
        try:
            self._program = _ENVIRONMENT.compile(text)
        except RuntimeError as error:
            raise RuleError(f"{text}: {error}") from None
        self.text = text
        self.reads = _reads(text)

    def value(self, variables: Mapping[str, Mapping[str, Json]]) -> Json:
        """The plain value. Raises RuleError if CEL ends in an error."""
        data = {
            name: {key: given[key] if _fits(given[key]) else _fit(given[key]) for key in keys if key in given}
            for name, keys in self.reads.items()
            if keys and (given := variables[name]) is not None
        }
        try:
            result = self._program.eval(data=data)
        except RuntimeError as error:  # CEL's own bounds, such as 10,000 iterations
            raise RuleError(f"{self.text}: {error}") from None
        if result.type() == cel.Type.ERROR:
            raise RuleError(f"{self.text}: {result.value()}")
        return result.value()


def _fits(value: Json) -> bool:
    """Whether CEL can take a value as it is."""
    kind = type(value)
    return kind is not dict and kind is not list and (kind is not int or -_INT64 <= value < _INT64)


def _reads(text: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {"self": set(), "eff": set(), "ctx": set()}
    for variable, key in _READS.findall(text):
        found[variable].add(key)
    return {variable: frozenset(keys) for variable, keys in found.items() if keys}


def _fit(value: Json) -> Json:
    """CEL knows no integer beyond 64 bits; as a number such a value is a double anyway."""
    if isinstance(value, dict):
        return {key: _fit(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fit(item) for item in value]
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return float(value) if abs(value) < 10**300 else 1e300
    return value


class Rule:
    """One entry of `x-rules`."""

    def __init__(self, entry: Mapping[str, Json]) -> None:
        self.entry = entry
        self.id: str = entry["id"]
        self.stage: Stage = entry["stage"]
        self.param: str | None = entry.get("param")
        self.fault: str = entry["fault"]
        self.expression = Expression(entry["rule"])
        self._values = {name: Expression(text) for name, text in entry.get("values", {}).items()}
        nothing: frozenset[str] = frozenset()
        reads = self.expression.reads
        self.fields = reads.get("self", nothing) | reads.get("eff", nothing)
        """The fields of the request that decide."""

    def check(self, variables: Mapping[str, Mapping[str, Json]]) -> None:
        """Raise the rule's fault if it does not hold."""
        held = self.expression.value(variables)
        if held is True:
            return
        if held is not False:
            raise RuleError(f"{self.id} gave {type(held).__name__}, not a boolean")
        raise self._broken(variables)

    def _broken(self, variables: Mapping[str, Mapping[str, Json]]) -> Fault:
        figures = {name: expression.value(variables) for name, expression in self._values.items()}
        message = fill(self.entry["message"], figures)
        return Fault(
            self.fault,
            param=self.param,
            path=(self.param,) if self.param else (),
            keyword=self.id.rsplit("/", 1)[1],
            entry=self.id,
            values={**figures, "message": message},
        )


class RuleList:
    """The rules of one stage in their order.

    One expression joins them all, so that a good request costs one evaluation; only when it fails are they asked
    one by one. Rules depend on the values they read and on nothing else, and clients send the same few settings
    again and again: the values that have passed are remembered.
    """

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        joined = " && ".join(f"({rule.expression.text})" for rule in rules)
        self._all = Expression(joined) if rules else None
        reads = self._all.reads if self._all else {}
        self._reads = [(variable, key) for variable, keys in reads.items() for key in sorted(keys)]
        self._passed: set[Hashable] = set()

    def check(self, variables: Mapping[str, Mapping[str, Json]]) -> None:
        """Raise the fault of the first rule that does not hold."""
        if self._all is None:
            return
        values = self._values(variables)
        if values in self._passed:
            return
        if not self._held(self._all, variables):
            for rule in self._rules:
                rule.check(variables)
        if values is not None:
            self._remember(values)

    def _values(self, variables: Mapping[str, Mapping[str, Json]]) -> Hashable:
        """All values that the rules read, with their types; None if one is too large to keep."""
        values = [variables[variable].get(key, _ABSENT) for variable, key in self._reads]
        types = [*map(type, values)]
        if dict in types or list in types or (str in types and any(map(_is_long, values))):
            return None
        return (*values, *types)  # 1, 1.0 and True are equal as values

    def _remember(self, values: Hashable) -> None:
        if len(self._passed) >= _REMEMBERED:
            self._passed.clear()
        self._passed.add(values)

    @staticmethod
    def _held(joined: Expression, variables: Mapping[str, Mapping[str, Json]]) -> bool:
        try:
            return joined.value(variables) is True
        except RuleError:  # the rule that is wrong will say so by itself
            return False


_ABSENT = object()
_REMEMBERED = 4096
_LONGEST_KEPT = 64


def _is_long(value: Json) -> bool:
    return isinstance(value, str) and len(value) > _LONGEST_KEPT
