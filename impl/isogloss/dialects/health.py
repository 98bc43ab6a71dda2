"""Health, the same in every dialect that has it."""

from __future__ import annotations

from isogloss_api.service.responses import HealthState
from isogloss_spec.faults import Fault

from isogloss.dialects.engine_call import RETRY_AFTER
from isogloss.engine.api import Engine


def live() -> HealthState:
    """The process answers, so it lives."""
    return {"object": "health.response", "message": "The service is alive."}


def ready(engine: Engine) -> HealthState:
    """The engine takes requests. Raises Fault `overloaded` while it does not."""
    if not engine.status().ready:
        raise Fault("overloaded", values={"retry_after": RETRY_AFTER})
    return {"object": "health.response", "message": "The service is ready."}
