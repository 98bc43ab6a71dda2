"""What is served where: documents, mounts, and the table that finds a request's route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isogloss_api.runtime import Exchange, Operation, Reply, Stream
from isogloss_spec import Fault, Judge

from isogloss.web.errors import ErrorRenderer
from isogloss.web.pages import Page

Answer = Reply[Any] | Stream[Any]
RouteFunction = Callable[[Exchange], Awaitable[Answer]]


class Api:
    """One document and the code behind it, ready to be mounted.

    `routes` are the generated `Routes`; `models` are the names that requests may use and `features` those of the
    document's `x-feature` marks that the engine serves (None: not checked). Everything that can be compiled from
    the document is compiled here, once.
    """

    def __init__(
        self,
        name: str,
        document: Mapping[str, Any],
        routes: object,
        operations: Sequence[Operation],
        *,
        models: Collection[str] | None = None,
        features: Collection[str] | None = None,
    ) -> None:
        self.name = name
        self.document = document
        self.operations = tuple(operations)
        self.models = models
        self.errors = ErrorRenderer(document)
        self.body_limit: int = document["x-limits"]["body"]
        self.functions: dict[str, RouteFunction] = {row.id: getattr(routes, row.id) for row in operations}
        self.judges = {
            row.id: Judge(document, row.id, models=models, features=features) for row in operations if row.has_body
        }


@dataclass(frozen=True, slots=True)
class Mount:
    """An api at a prefix: "" or "/name"."""

    api: Api
    prefix: str


def mounts(dialects: Sequence[Api], service: Api, default: str | None) -> list[Mount]:
    """Each dialect at `/<name>`, the default one at "" too, and `service` at "" for what is left there."""
    named = [Mount(api, f"/{api.name}") for api in dialects]
    unprefixed = [Mount(api, "") for api in dialects if api.name == default]
    return [*named, *unprefixed, Mount(service, "")]


@dataclass(frozen=True, slots=True)
class Route:
    """What one method of one path leads to: an operation of a mount, or a page of ours."""

    path: str
    mount: Mount
    operation: Operation
    page: Page | None = None


class RouteTable:
    """Finds routes by exact path. A path belongs to the first mount that has it, with all its methods."""

    def __init__(self, mounts: Sequence[Mount]) -> None:
        self.mounts = tuple(mounts)
        self._fallback = self.mounts[-1].api
        self._paths: dict[str, dict[str, Route]] = {}
        self._apis: dict[str, Api] = {}
        """The api that answers for unknown paths, by first segment."""
        for mount in self.mounts:
            self._add(mount)

    def __iter__(self) -> Iterator[Route]:
        return (route for methods in self._paths.values() for route in methods.values())

    def add_page(self, path: str, mount: Mount, page: Page) -> None:
        """Serve a page at a path that no document has."""
        operation = Operation(
            id="page",
            method="GET",
            path=path,
            media_type=page.media_type,
            statuses=(200,),
            faults=(),
            has_body=False,
            public=False,
            framing=None,
        )
        self._paths.setdefault(path, {"GET": Route(path, mount, operation, page)})

    def find(self, path: str, method: str) -> Route:
        """The route of a request. Raises the faults `not_found` and `method_not_allowed`."""
        methods = self._paths.get(path)
        if methods is None:
            raise Fault("not_found")
        route = methods.get(method)
        if route is None:
            raise Fault("method_not_allowed", values={"allow": ", ".join(sorted(methods))})
        return route

    def api_of(self, path: str) -> Api:
        """The api in whose way an error at this path is written: the mount whose prefix or, without a prefix,
        whose own first path segment the path begins with; else the last mount's."""
        return self._apis.get(_first_segment(path), self._fallback)

    def _add(self, mount: Mount) -> None:
        mine: dict[str, dict[str, Route]] = {}
        for operation in mount.api.operations:
            path = mount.prefix + operation.path
            if "{" in path:
                raise ValueError(f"{mount.api.name}: paths with parameters are not served: {path}")
            mine.setdefault(path, {})[operation.method] = Route(path, mount, operation)
            self._apis.setdefault(_first_segment(path), mount.api)
        self._paths = mine | self._paths


def _first_segment(path: str) -> str:
    return path[1:].partition("/")[0]
