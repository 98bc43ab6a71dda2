"""What is served where."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from isogloss.web.pages import index_page
from isogloss.web.routing import Api, Mount, RouteTable
from isogloss_api import document
from isogloss_api.service import handlers as service


def test_every_operation_answers_at_every_mount(live: Any) -> None:
    nim, beside = live.web.apis
    paths = [f"{prefix}{row.path}" for prefix in ("/nim", "") for row in nim.operations]
    paths += [row.path for row in beside.operations]
    for path in paths:
        answer = live.post(path=path) if path.endswith("completions") else live.get(path)
        assert answer.status == 200, path


def test_equal_operation_ids_of_two_documents_at_one_prefix_are_kept_apart(make_live: Any) -> None:
    live = make_live()
    assert live.get("/health/live").json["message"] == "service live"
    assert live.get("/v1/health/live").json["message"] == "live"
    assert live.get("/nim/v1/health/live").json["message"] == "live"
    assert live.get("/metrics").body == b"figure 1\n"


def test_without_a_default_dialect_the_service_has_the_root(make_live: Any) -> None:
    live = make_live(default=None)
    assert live.post(path="/v1/completions").status == 404
    assert live.post(path="/v1/completions").json["error"]["code"] == "not_found"
    assert live.get("/v1/models").status == 200
    assert live.post().status == 200


def test_a_path_belongs_to_the_first_mount_that_has_it() -> None:
    first = Api("first", document("service"), service.Routes(None), service.OPERATIONS)  # type: ignore[arg-type]
    second = Api("second", document("service"), service.Routes(None), service.OPERATIONS)  # type: ignore[arg-type]
    table = RouteTable([Mount(first, ""), Mount(second, "")])
    assert {route.mount.api.name for route in table} == {"first"}


def test_paths_with_parameters_are_refused_at_start() -> None:
    row = dataclasses.replace(service.OPERATIONS[0], path="/v1/models/{model}")
    api = Api("service", document("service"), service.Routes(None), [row])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parameters"):
        RouteTable([Mount(api, "")])


def test_a_missing_route_function_shows_at_start() -> None:
    with pytest.raises(AttributeError):
        Api("service", document("service"), object(), service.OPERATIONS)


def test_media_type_of_metrics(live: Any) -> None:
    assert live.get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_documents_are_served_as_bundled(live: Any) -> None:
    assert live.get("/nim/openapi.json").json == document("nim")
    assert live.get("/openapi.json").json == document("service")


def test_index_is_self_contained(live: Any) -> None:
    answer = live.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert b'href="/nim/openapi.json"' in answer.body
    assert b"http" not in answer.body


def test_names_on_the_index_are_escaped() -> None:
    page = index_page([("nim", "<b>")], ["<script>"])
    assert b"<b>" not in page.body
    assert b"<script>" not in page.body
