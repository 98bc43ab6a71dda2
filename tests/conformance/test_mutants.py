"""The suite notices wrong servers. All of them run with `make mutants`; here, every eighth."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from isogloss_conformance.mutants import MUTANTS
from isogloss_conformance.mutants.score import RIGHT, Trial, Upstream, trials
from isogloss_conformance.results import Result, Status
from support.server import KEY, Server, serving

OPTIONS = "--engine scripted --reasoning-parser qwen3".split()
LIMITS = "--max-open-requests-per-key 32 --max-num-seqs 8 --max-waiting 8".split()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server behind a key, with room for fewer calls than a flood has; the same as that of `make mutants`."""
    with serving(tmp_path_factory.mktemp("guarded"), *OPTIONS, *LIMITS, key=KEY) as server:
        yield server


def test_a_sample_is_noticed_and_the_right_server_is_not(guarded: Server) -> None:
    made = list(trials(Upstream(guarded.url, KEY), MUTANTS[::8]))
    assert [trial.name for trial in made if not trial.well] == []
    assert len(made) > len(MUTANTS) // 8


def test_names_are_unique_and_there_are_enough() -> None:
    assert len({(mutant.name, mutant.killer) for mutant in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.parametrize(
    ("name", "failing", "looked", "well"),
    [
        ("m", True, 1, True),
        ("m", False, 1, False),
        ("m", False, 0, False),
        (RIGHT, False, 1, True),
        (RIGHT, True, 1, False),
        (RIGHT, False, 0, False),
    ],
)
def test_who_is_well(name: str, failing: bool, looked: int, well: bool) -> None:
    failed = (Result("a", "rules", Status.FAIL, "a"),) if failing else ()
    assert Trial(name, "nim/x", failed, looked).well is well
