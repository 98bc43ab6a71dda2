"""Documents for the tests of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import isogloss_api
import pytest

OPENAPI = Path(__file__).parents[2] / "openapi"


@pytest.fixture(scope="session")
def nim() -> dict[str, Any]:
    return isogloss_api.document("nim")
