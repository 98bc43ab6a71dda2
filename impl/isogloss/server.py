"""The composition root: settings to engine, handlers, web app and a running server."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from isogloss_api import document
from uvicorn.loops.auto import auto_loop_factory

from isogloss.dialects.mindie_config import MindIEConfigError, load_mindie_config
from isogloss.dialects.registry import DIALECTS, Dialect, Options, build, features
from isogloss.engine.api import Engine
from isogloss.engine.chat.registry import REASONING_FORMATS, TOOL_FORMATS
from isogloss.media.policy import MIB, MediaPolicy, parse_hosts
from isogloss.settings import MEDIA_HOSTS, Settings
from isogloss.web.app import Limits, build_app
from isogloss.web.limits.drain import Drain
from isogloss.web.protocol import ConnectionLimits
from isogloss.web.routing import Api, mounts
from isogloss.web.serving import Server, Serving, listen

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from isogloss.media.loader import MediaLoader

logger = logging.getLogger("isogloss.server")

_SERVICE = "service"
_DECODERS = ("PIL", "av", "soundfile")
_AUTO, _NONE = "auto", "none"


class StartError(Exception):
    """The server cannot start. The text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """What there is to say once requests are taken."""

    urls: dict[str, str]
    """Dialect to base URL."""
    model: str
    engine: str
    seconds: float
    """From the start of loading."""
    tool_format: str | None = None
    """How calls of functions are read; None if there are none."""
    reasoning_format: str | None = None
    """How thoughts are told apart; None if they are not."""


def serve(settings: Settings, announce: Callable[[Announcement], None]) -> None:
    """Load, listen, and serve until a signal has drained the server. Raises StartError."""
    _check_dialects(settings)
    _check_formats(settings)
    # What is wrong is told of before the model is loaded.
    _options(settings)
    _media_policy(settings)
    keys = settings.keys()
    if not keys and settings.host not in ("127.0.0.1", "::1", "localhost"):
        logger.warning("no keys are set: everyone who reaches %s may use this server", settings.host)
    with _listen(settings) as sock, asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(_serve(settings, keys, sock, announce))


async def _serve(
    settings: Settings, keys: tuple[str, ...], sock: socket.socket, announce: Callable[[Announcement], None]
) -> None:
    begun = perf_counter()
    engine = make_engine(settings)
    await _start(engine)
    _check_model_len(settings.max_model_len, engine.card.context_length)
    # What is loaded by now stays: the garbage collector needn't look at it again on every full run.
    gc.collect()
    gc.freeze()

    def started() -> None:
        port: int = sock.getsockname()[1]
        _write_port(settings, port)
        announce(_announcement(settings, engine, port, perf_counter() - begun))

    drain, media = Drain(), make_media(settings, engine)
    app = make_app(settings, engine, keys, drain, media)
    try:
        await Server(app, _serving(settings), drain, started).serve([sock])
    finally:
        if media is not None:
            media.close()
        await engine.stop()


def make_app(
    settings: Settings,
    engine: Engine,
    keys: tuple[str, ...] = (),
    drain: Drain | None = None,
    media: MediaLoader | None = None,
) -> ASGIApp:
    """The ASGI app over an engine that is started. Without `media` requests may only have texts."""
    limits = Limits(
        settings.max_open_requests,
        settings.max_open_requests_per_key,
        settings.body_timeout_s,
        settings.max_open_body_mib * 1024 * 1024,
    )
    options = replace(_options(settings), media=media)
    dialects = [_api(name, engine, options) for name in settings.dialects]
    served = mounts(dialects, _api(_SERVICE, engine, options), settings.unprefixed)
    return build_app(served, keys=keys, limits=limits, drain=drain)


def make_media(settings: Settings, engine: Engine) -> MediaLoader | None:
    """What gets pictures, films and sound for an engine whose model takes them, if their decoders are installed."""
    if engine.processor is None:
        return None
    lacking = [name for name in _DECODERS if find_spec(name) is None]
    if lacking:
        logger.warning("only texts are taken without %s: pip install 'isogloss[media]'", ", ".join(lacking))
        return None
    from isogloss.media.loader import MediaLoader  # noqa: PLC0415

    return MediaLoader(_media_policy(settings))


def _media_policy(settings: Settings) -> MediaPolicy:
    hosts = os.environ.get(MEDIA_HOSTS, "") if settings.media_hosts is None else ",".join(settings.media_hosts)
    try:
        return MediaPolicy(
            allowed_hosts=parse_hosts(hosts),
            folder=settings.media_folder,
            bytes_in_flight=settings.max_open_media_mib * MIB,
            fetch_seconds=settings.media_timeout_s,
            workers=settings.media_workers,
        )
    except ValueError as error:
        raise StartError(f"media: {error}") from None


def make_engine(settings: Settings) -> Engine:
    """The engine that the settings name, not started. Imports torch only for the torch engine."""
    if settings.engine == "scripted":
        from isogloss.engine import scripted  # noqa: PLC0415

        limits = scripted.Limits(
            **_chosen(settings, context_length="max_model_len", max_num_seqs="max_num_seqs", max_waiting="max_waiting")
        )
        names = tuple(_adapters(settings))
        formats = {name: value for name, value in _formats(settings).items() if value != _AUTO}
        return scripted.ScriptedEngine(settings.model_name or "scripted", limits=limits, adapters=names, **formats)
    from isogloss.engine.torch.engine import TorchEngine  # noqa: PLC0415
    from isogloss.engine.torch.settings import TorchSettings  # noqa: PLC0415

    same = ("kv_cache_gib", "max_model_len", "max_num_seqs", "max_waiting", "block_size", "prefill_budget", "threads")
    adapters = _adapters(settings)
    chosen = _chosen(settings, name="model_name", cache_dir="cache_dir", **{name: name for name in same})
    return TorchEngine(
        TorchSettings(
            settings.model,
            device=settings.device,
            dtype=settings.dtype,
            adapters=adapters,
            **_formats(settings),
            **chosen,
        )
    )


def _formats(settings: Settings) -> dict[str, Any]:
    """Engine argument to the name of a format, None for none, or `auto`."""
    chosen = {"tool_format": settings.tool_parser, "reasoning_format": settings.reasoning_parser}
    return {argument: None if name == _NONE else name for argument, name in chosen.items()}


def _adapters(settings: Settings) -> dict[str, Path]:
    """Adapters of the settings and of MindIE's configuration. Raises StartError for a name that both have."""
    own, mindie = settings.adapters(), _options(settings).mindie
    if own.keys() & {mindie.model_name, *mindie.adapters}:
        raise StartError("adapter: MindIE's configuration has a model or an adapter of the same name")
    return {**own, **mindie.adapters}


def _chosen(settings: Settings, **names: str) -> dict[str, Any]:
    """Engine argument to value, without what was left to the engine."""
    values = {argument: getattr(settings, name) for argument, name in names.items()}
    return {argument: value for argument, value in values.items() if value is not None}


async def _start(engine: Engine) -> None:
    try:
        await engine.start()
    except ModuleNotFoundError:  # an extra that is not installed, which the command line explains
        raise
    # Loading a model fails in as many ways as there are models; each is the user's to read, in one line.
    except Exception as error:
        logger.debug("the engine did not start", exc_info=error)
        raise StartError(f"the engine did not start: {error or type(error).__name__}") from error


def _check_model_len(wanted: int | None, context_length: int) -> None:
    if wanted is not None and wanted > context_length:
        logger.warning("max_model_len: the model has %d tokens of context, not %d", context_length, wanted)


def _options(settings: Settings) -> Options:
    if settings.mindie_config is None:
        return Options()
    try:
        return Options(mindie=load_mindie_config(settings.mindie_config))
    except MindIEConfigError as error:
        raise StartError(f"mindie_config: {error}") from None


def _api(name: str, engine: Engine, options: Options) -> Api:
    dialect = build(name, engine, options)
    return Api(
        name,
        _document(dialect),
        dialect.routes,
        dialect.operations,
        models=frozenset({dialect.model or engine.card.name, *engine.card.adapters}),
        features=features(engine, options),
    )


def _document(dialect: Dialect) -> dict[str, Any]:
    found = document(dialect.document)
    if dialect.body_limit is None:
        return found
    return {**found, "x-limits": {**found["x-limits"], "body": dialect.body_limit}}


def _check_dialects(settings: Settings) -> None:
    known = [name for name in DIALECTS if name != _SERVICE]
    for name in settings.dialects:
        if name not in known:
            raise StartError(f"dialects: {name!r} is none of {', '.join(known)}")
    if settings.unprefixed not in (*settings.dialects, "none"):
        raise StartError(f"default_dialect: {settings.unprefixed!r} is not served; set it to one that is, or none")


def _check_formats(settings: Settings) -> None:
    for setting, known in (("tool_parser", TOOL_FORMATS), ("reasoning_parser", REASONING_FORMATS)):
        name = getattr(settings, setting)
        if name not in (_AUTO, _NONE, *known):
            raise StartError(f"{setting}: {name!r} is none of {', '.join((_AUTO, _NONE, *known))}")


def _listen(settings: Settings) -> socket.socket:
    try:
        return listen(settings.host, settings.port)
    except OSError as error:
        raise StartError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None


def _serving(settings: Settings) -> Serving:
    connection = ConnectionLimits(header_timeout_s=settings.header_timeout_s, write_timeout_s=settings.write_timeout_s)
    return Serving(connection, settings.keep_alive_s, settings.drain_timeout_s)


def _write_port(settings: Settings, port: int) -> None:
    if settings.port_file is not None:
        unfinished = settings.port_file.with_name(f".{settings.port_file.name}.{os.getpid()}")
        unfinished.write_text(f"{port}\n", encoding="ascii")
        unfinished.replace(settings.port_file)


def _announcement(settings: Settings, engine: Engine, port: int, seconds: float) -> Announcement:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    urls = {name: f"http://{host}:{port}/{name}/v1" for name in settings.dialects}
    card = engine.card
    return Announcement(urls, card.name, settings.engine, seconds, card.tool_format, card.reasoning_format)
