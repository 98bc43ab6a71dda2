"""Puts the layers together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from isogloss.web.answers import send_page
from isogloss.web.connexion_app import connexion_app, operation_name
from isogloss.web.endpoint import BodyEndpoint, Endpoint
from isogloss.web.failure import Failures
from isogloss.web.identity import Identity
from isogloss.web.limits.admission import Admission
from isogloss.web.limits.drain import Drain, DrainGate
from isogloss.web.limits.keys import KeyRing, Keys
from isogloss.web.pages import document_page, index_page
from isogloss.web.routing import Mount, RouteTable
from isogloss.web.state import state_of


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that the settings give; those of bodies' sizes stand in the documents."""

    max_open_requests: int = 1024
    max_open_requests_per_key: int = 256
    body_timeout_s: float = 60.0


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
    endpoints: dict[str, ASGIApp] = {}
    for mount in mounts:
        for operation in mount.api.operations:
            endpoints[operation_name(mount, operation.id)] = (
                BodyEndpoint(mount.api, operation, limits.body_timeout_s, drain.running)
                if operation.has_body
                else Endpoint(mount.api, operation)
            )
    return endpoints


def _add_pages(table: RouteTable) -> None:
    *dialects, service = table.mounts
    named = [mount for mount in dialects if mount.prefix]
    for mount in [*named, service]:
        table.add_page(f"{mount.prefix}/openapi.json", mount, document_page(mount.api.document))
    titles = [(mount.api.name, mount.api.document["info"]["title"]) for mount in named]
    table.add_page("/", service, index_page(titles, service.api.models or ()))
