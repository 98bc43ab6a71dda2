"""What a model says of itself, and a stream of the times of its tokens."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from isogloss.engine.torch.loading import LoadedModel
from isogloss.engine.torch.stream import Clock


def test_a_clock_tells_waiting_from_working():
    clock = Clock()
    for began, sampled in ((1.0, 2.0), (2.25, 3.0), (3.0, 3.5)):
        clock.tick(began, sampled, 1)
    assert (clock.decode, clock.waits) == ([1.0, 0.5], [0.25, 0.0])


@pytest.mark.parametrize(("own", "general", "wanted"), [(20, 50, 20), (None, 50, 50), (None, None, None), (0, 50, 0)])
def test_the_models_own_top_k(own, general, wanted):
    config = SimpleNamespace() if general is None else SimpleNamespace(top_k=general)
    model = SimpleNamespace(
        generation_config=SimpleNamespace(top_k=own), config=SimpleNamespace(get_text_config=lambda: config)
    )
    assert LoadedModel("m", model, None, 8).top_k == wanted
