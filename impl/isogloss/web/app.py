"""Puts the layers together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isogloss_api.runtime import Operation
from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.answers import send_page
from isogloss.web.connexion_app import connexion_app, operation_name
from isogloss.web.endpoint import BodyEndpoint, Endpoint
from isogloss.web.failure import Failures
from isogloss.web.identity import Identity
from isogloss.web.limits.admission import Admission
from isogloss.web.limits.body_budget import BodyBudget
from isogloss.web.limits.drain import Drain, DrainGate
from isogloss.web.limits.keys import KeyRing, Keys
from isogloss.web.limits.unread import UnreadBody
from isogloss.web.pages import document_page, index_page
from isogloss.web.routing import Api, Mount, RouteTable
from isogloss.web.state import state_of


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that the settings give; those of bodies' sizes stand in the documents."""

    max_open_requests: int = 1024
    max_open_requests_per_key: int = 256
    body_timeout_s: float = 60.0
    max_open_body_bytes: int = 256 * 1024 * 1024


class Pages:
    """Answers pages itself and hands everything else on. Raises the fault of a request that leads nowhere."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or hand on."""
        state = state_of(scope)
        page = state.route.page
        if page is None:
            await self._app(scope, receive, send)
        else:
            await send_page(send, state, page)


def build_app(
    mounts: Sequence[Mount], *, keys: Iterable[str] = (), limits: Limits | None = None, drain: Drain | None = None
) -> ASGIApp:
    """The whole web layer as one ASGI app (HTTP scopes only). The last mount answers for paths of nobody's."""
    limits, drain = limits or Limits(), drain or Drain()
    table = RouteTable(mounts)
    _add_pages(table)
    app: ASGIApp = connexion_app(table, _endpoints(mounts, limits, drain))
    app = Admission(Pages(app), limits.max_open_requests, limits.max_open_requests_per_key)
    app = Keys(DrainGate(app, drain), KeyRing(keys))
    return Identity(Failures(app, table), table)


def _endpoints(mounts: Sequence[Mount], limits: Limits, drain: Drain) -> dict[str, ASGIApp]:
    budget = BodyBudget(limits.max_open_body_bytes)

    def endpoint(api: Api, operation: Operation) -> ASGIApp:
        if operation.has_body:
            return BodyEndpoint(api, operation, limits.body_timeout_s, budget, drain.running)
        plain = Endpoint(api, operation)
        if "body_too_large" in operation.faults:
            return UnreadBody(plain, api.body_limit, limits.body_timeout_s, drain.running)
        return plain

    return {
        operation_name(mount, operation.id): endpoint(mount.api, operation)
        for mount in mounts
        for operation in mount.api.operations
    }


def _add_pages(table: RouteTable) -> None:
    *dialects, service = table.mounts
    named = [mount for mount in dialects if mount.prefix]
    for mount in [*named, service]:
        table.add_page(f"{mount.prefix}/openapi.json", mount, document_page(mount.api.document))
    titles = [(mount.api.name, mount.api.document["info"]["title"]) for mount in named]
    table.add_page("/", service, index_page(titles, service.api.models or ()))
