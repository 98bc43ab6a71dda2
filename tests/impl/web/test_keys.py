"""Who may come in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from isogloss.web.limits.keys import KeyRing
from isogloss_spec import Fault


@pytest.fixture(scope="module")
def guarded(request: pytest.FixtureRequest) -> Iterator[Any]:
    conftest = next(p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "build_web"))
    server = conftest.Live(conftest.build_web(keys=("k1", "k2"), body_limit=1000), conftest.Serving())
    yield server
    server.stop()


def _all_routes(live: Any) -> list[tuple[str, str, bool]]:
    nim, service = live.web.apis
    routes = [(row.method, prefix + row.path, row.public) for prefix in ("/nim", "") for row in nim.operations]
    routes += [(row.method, row.path, row.public) for row in service.operations if row.path != "/v1/models"]
    return [*routes, ("GET", "/", False), ("GET", "/openapi.json", False), ("GET", "/nim/openapi.json", False)]


def _ask(live: Any, method: str, path: str, **headers: str) -> int:
    answer = live.post(path=path, **headers) if method == "POST" else live.get(path, method, **headers)
    status: int = answer.status
    return status


def test_routes_are_guarded_unless_public(guarded: Any) -> None:
    for method, path, public in _all_routes(guarded):
        assert _ask(guarded, method, path) == (200 if public else 401), path
        assert _ask(guarded, method, path, Authorization="Bearer k2") == 200, path
        assert _ask(guarded, method, path, Authorization="Bearer k3") == (200 if public else 401), path


def test_public_are_health_and_metrics_only(guarded: Any) -> None:
    public = {path for _, path, public in _all_routes(guarded) if public}
    assert public == {
        "/nim/v1/health/live",
        "/nim/v1/health/ready",
        "/v1/health/live",
        "/v1/health/ready",
        "/health/live",
        "/health/ready",
        "/metrics",
    }


def test_the_key_comes_before_everything_else(guarded: Any) -> None:
    assert guarded.get("/nope").status == 401
    assert guarded.get("/nim/v1/nope").status == 401
    assert guarded.get("/nim/v1/completions").status == 401
    assert guarded.get("/health/live", method="POST").status == 401
    assert guarded.post(Content_Type="text/plain").status == 401
    assert guarded.post({"prompt": "x" * 2000}).status == 401
    assert guarded.post(b"{").status == 401
    assert guarded.get("/nope", Authorization="Bearer k1").status == 404


def test_the_refusal_says_how(guarded: Any) -> None:
    answer = guarded.post()
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json["type"] == "AuthenticationError"
    assert guarded.get("/nope").json["error"]["code"] == "unauthorized"


HEADERS = {
    b"Bearer k1": True,
    b"bearer k1": True,
    b"BEARER  k1 ": True,
    b"Bearer k2": True,
    b"": False,
    b"Bearer": False,
    b"Bearer ": False,
    b"Bearer k": False,
    b"Bearer k11": False,
    b"Bearer K1": False,
    b"Basic k1": False,
    b"k1": False,
    b"Bearer k1,k2": False,
    b"Bearer \xff": False,
}


@pytest.mark.parametrize(("header", "passes"), HEADERS.items())
def test_headers(header: bytes, passes: bool) -> None:
    ring = KeyRing(["k1", "k2"])
    if passes:
        assert len(ring.name_of(header)) == 8
    else:
        with pytest.raises(Fault, match="unauthorized"):
            ring.name_of(header)


def test_a_missing_header_is_refused() -> None:
    with pytest.raises(Fault):
        KeyRing(["k1"]).name_of(None)


def test_keys_have_different_names() -> None:
    ring = KeyRing(["k1", "k2"])
    assert ring.name_of(b"Bearer k1") != ring.name_of(b"Bearer k2")
    assert "k1" not in ring.name_of(b"Bearer k1")
