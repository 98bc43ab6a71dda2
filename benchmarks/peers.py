"""What our server is measured against: one starlette route, with nothing around it.

Run as `python -m benchmarks.peers pydantic|checks|engine --port-file PATH`.

- `pydantic`: reads the body into the generated model and answers something fixed.
- `checks`: what our server checks (the judge, the model, the rules of stage `prompt`), then the fixed answer.
- `engine`: the same checks, then our handlers on the scripted engine.
"""

from __future__ import annotations

import argparse
import gc
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from isogloss.dialects.nim import NimHandlers, Prompts
from isogloss.engine.scripted import ScriptedEngine
from isogloss_api import document
from isogloss_api.nim.requests import CompletionRequest
from isogloss_api.runtime import Call, Stream
from isogloss_spec import Judge
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from benchmarks.processes import HOST

Endpoint = Callable[[Request], Awaitable[Response]]

FIXED_EVENTS = 64
"""How many events a fixed stream has."""

_CHOICE = {"index": 0, "text": " tall", "logprobs": None, "finish_reason": "length", "stop_reason": None}
_HEAD = {"id": "cmpl-0123456789abcdef0123456789abcdef", "object": "text_completion", "created": 1, "model": "scripted"}
_USAGE = {
    "prompt_tokens": 800,
    "total_tokens": 801,
    "completion_tokens": 1,
    "prompt_tokens_details": {"cached_tokens": 0},
}
_WHOLE = {**_HEAD, "choices": [{**_CHOICE, "prompt_logprobs": None}], "usage": _USAGE}
_CHUNK = {**_HEAD, "choices": [_CHOICE]}


@dataclass(frozen=True, slots=True)
class Checked:
    """A request that passed."""

    eff: Any
    body: CompletionRequest
    prompts: Prompts


class Checks:
    """Everything that our server checks about a body, in its order."""

    def __init__(self, engine: ScriptedEngine) -> None:
        self.handlers = NimHandlers(engine)
        self._judge = Judge(document("nim"), "create_completion", models={engine.card.name}, features=engine.features)

    async def check(self, raw: bytes) -> Checked:
        """Judge a body. Raises Fault, which nobody here turns into an answer: only good requests are sent."""
        verdict = self._judge.check(raw)
        body = CompletionRequest.model_validate(verdict.body)
        measured = await self.handlers.measure_create_completion(body)
        self._judge.check_prompt(verdict, measured.context)
        return Checked(verdict.eff, body, measured.prompt)


async def pydantic_route(request: Request) -> Response:
    """The generated model and nothing else."""
    body = CompletionRequest.model_validate_json(await request.body())
    return _fixed(body.stream is True)


def checks_route(checks: Checks) -> Endpoint:
    """The same checks as our server's."""

    async def route(request: Request) -> Response:
        checked = await checks.check(await request.body())
        return _fixed(checked.eff["stream"])

    return route


def engine_route(checks: Checks) -> Endpoint:
    """The same checks and the same work as our server's."""

    async def route(request: Request) -> Response:
        checked = await checks.check(await request.body())
        call = Call("request", checked.eff)
        answer = await checks.handlers.create_completion(checked.body, checked.prompts, call)
        return _streamed(answer.events) if isinstance(answer, Stream) else _json(answer.body)

    return route


def _json(body: Mapping[str, Any]) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")


def _fixed(stream: bool) -> Response:
    return _streamed(_fixed_chunks()) if stream else _json(_WHOLE)


async def _fixed_chunks() -> AsyncIterator[Mapping[str, Any]]:
    for _ in range(FIXED_EVENTS):
        yield _CHUNK


def _streamed(chunks: AsyncIterator[Mapping[str, Any]]) -> Response:
    async def events() -> AsyncIterator[bytes]:
        async for chunk in chunks:
            yield b"data: " + orjson.dumps(chunk) + b"\n\n"
        yield b"data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


async def _ready(request: Request) -> Response:
    return Response()


def _app(kind: str, engine: ScriptedEngine) -> Starlette:
    endpoints: dict[str, Callable[[], Endpoint]] = {
        "pydantic": lambda: pydantic_route,
        "checks": lambda: checks_route(Checks(engine)),
        "engine": lambda: engine_route(Checks(engine)),
    }
    routes = [
        Route("/v1/completions", endpoints[kind](), methods=["POST"]),
        Route("/v1/health/ready", _ready, methods=["GET"]),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await engine.start()
        # As our server does.
        gc.collect()
        gc.freeze()
        yield
        await engine.stop()

    return Starlette(routes=routes, lifespan=lifespan)


def main() -> None:
    """Serve one of the peers until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["pydantic", "checks", "engine"])
    parser.add_argument("--port-file", type=Path, required=True)
    options = parser.parse_args()
    sock = socket.create_server((HOST, 0))
    options.port_file.write_text(str(sock.getsockname()[1]))
    config = uvicorn.Config(
        _app(options.kind, ScriptedEngine()),
        loop="uvloop",
        http="httptools",
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    uvicorn.Server(config).run([sock])


if __name__ == "__main__":
    main()
