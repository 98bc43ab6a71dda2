"""Small wrong servers. Each is the right one behind a proxy that spoils one thing; the suite must notice every one."""

from isogloss_conformance.mutants.answers import ANSWERS
from isogloss_conformance.mutants.requests import REQUESTS
from isogloss_conformance.mutants.streams import STREAMS

MUTANTS = (*REQUESTS, *ANSWERS, *STREAMS)

__all__ = ["MUTANTS"]
