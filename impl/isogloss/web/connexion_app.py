"""The one place that knows connexion: operations are found by it and resolved by their operationId.

connexion 3.3 reads OpenAPI 3.0 only and judges bodies by JSON Schema draft 4. So it gets an extract of each
document that is the same in both versions (paths, methods, operationIds) and holds nothing it could judge; the judge
holds the document itself. Its other middlewares (errors, security, validation, context) are left out for the same
reason: what they do is done before or behind it, by the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from connexion import ConnexionMiddleware
from connexion.apps.asynchronous import AsyncApi, AsyncASGIApp
from connexion.middleware.routing import RoutingMiddleware
from connexion.operations import AbstractOperation
from connexion.resolver import Resolver
from starlette.types import ASGIApp

from isogloss.web.routing import Mount, Route, RouteTable


class _EndpointApi(AsyncApi):  # type: ignore[misc]  # connexion ships no types
    """Calls what was resolved as an ASGI app, instead of wrapping it in a decorator on each request."""

    def make_operation(self, operation: AbstractOperation) -> ASGIApp:
        endpoint: ASGIApp = operation.function
        return endpoint


class _EndpointApp(AsyncASGIApp):  # type: ignore[misc]  # connexion ships no types
    api_cls = _EndpointApi


def operation_name(mount: Mount, operation_id: str) -> str:
    """The operationId as connexion sees it. Several documents may stand at one prefix and share operationIds."""
    return f"{mount.api.name}.{operation_id}"


def connexion_app(table: RouteTable, endpoints: Mapping[str, ASGIApp]) -> ASGIApp:
    """An app that leads each route of the table to the endpoint of its operation, by `operation_name`."""
    app = ConnexionMiddleware(
        _EndpointApp(), import_name=__name__, specification_dir=Path("/"), middlewares=[RoutingMiddleware]
    )
    for mount in table.mounts:
        extract = _extract(mount, table)
        app.add_api(extract, base_path=mount.prefix, resolver=Resolver(endpoints.__getitem__))
    started: ASGIApp = app
    return started


def _extract(mount: Mount, table: RouteTable) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in _routes(mount, table):
        operation = route.operation
        entry = {
            "operationId": operation_name(mount, operation.id),
            "responses": {"200": {"description": "as the document says"}},
        }
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {"openapi": "3.0.3", "info": {"title": mount.api.name, "version": "0"}, "paths": paths}


def _routes(mount: Mount, table: RouteTable) -> Iterable[Route]:
    return (route for route in table if route.mount == mount and route.page is None)
