"""Small wrong servers. Each is the right one behind a proxy that spoils one thing; the suite must notice every one."""

from isogloss_conformance.mutants.answers import ANSWERS
from isogloss_conformance.mutants.calls import CALLS
from isogloss_conformance.mutants.edges import EDGES
from isogloss_conformance.mutants.half_heeded import HALF_HEEDED
from isogloss_conformance.mutants.media import MEDIA
from isogloss_conformance.mutants.requests import REQUESTS
from isogloss_conformance.mutants.stream_pairs import STREAM_PAIRS
from isogloss_conformance.mutants.streams import STREAMS

MUTANTS = (*REQUESTS, *ANSWERS, *STREAMS, *STREAM_PAIRS, *CALLS, *MEDIA, *EDGES, *HALF_HEEDED)

__all__ = ["MUTANTS"]
