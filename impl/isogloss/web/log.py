"""What the server writes down: one line per request, and why a request failed. Never content, never a key."""

from __future__ import annotations

import logging
import traceback

from isogloss_spec import Fault

from isogloss.web.state import RequestState

access = logging.getLogger("isogloss.access")
failures = logging.getLogger("isogloss.web")

_LONGEST_PATH = 128


def log_request(state: RequestState, method: str, seconds: float) -> None:
    """One line in the form key=value. A path that nothing is served at is cut and escaped."""
    if not access.isEnabledFor(logging.INFO):
        return
    shown = ascii(state.path[:_LONGEST_PATH]) if isinstance(state.target, Fault) else state.path
    access.info(
        "request id=%s method=%s path=%s status=%d ms=%.1f key=%s fault=%s",
        state.request_id,
        method,
        shown,
        state.status,
        seconds * 1000,
        state.key_name or "-",
        state.fault or "-",
    )


def log_failure(state: RequestState, error: BaseException) -> None:
    """Where an unforeseen exception came from. Its text may hold parts of the request, so only debug logs show it."""
    if failures.isEnabledFor(logging.DEBUG):
        failures.error("request id=%s failed", state.request_id, exc_info=error)
    else:
        failures.error("request id=%s failed\n%s", state.request_id, _origin(error))


def log_refusal(state: RequestState, fault: Fault) -> None:
    """The cause of a fault of the server's own. A handler chains only errors whose text is safe to log."""
    if fault.__cause__ is not None:
        cause = fault.__cause__
        failures.warning("request id=%s fault=%s: %s: %s", state.request_id, fault.name, type(cause).__name__, cause)


def _origin(error: BaseException) -> str:
    frames = "".join(traceback.format_tb(error.__traceback__))
    cause = error.__cause__ or error.__context__
    before = _origin(cause) + "then\n" if cause is not None else ""
    return f"{before}{frames}{type(error).__module__}.{type(error).__qualname__}\n"
