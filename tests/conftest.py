"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# The same cases in every run, so that a change that fails is one that broke something. On a loaded machine time says
# nothing. `make test ARGS='--hypothesis-profile explore'` looks for new cases.
settings.register_profile("isogloss", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("isogloss")
