"""Works on an OpenAPI document given as a mapping: bundle, parse, judge, render faults, list rules, generate."""

from isogloss_spec.document import DocumentError, bundle
from isogloss_spec.faults import ErrorAnswer, Fault, FaultTable
from isogloss_spec.judge import Judge, Verdict

__all__ = ["DocumentError", "ErrorAnswer", "Fault", "FaultTable", "Judge", "Verdict", "bundle"]
