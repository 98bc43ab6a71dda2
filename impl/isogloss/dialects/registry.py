"""The documents that this server can speak: a new dialect is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

from isogloss_api.acs import handlers as acs
from isogloss_api.atoma import handlers as atoma
from isogloss_api.mindie import handlers as mindie
from isogloss_api.nim import handlers as nim
from isogloss_api.runtime import Operation
from isogloss_api.service import handlers as service

from isogloss.dialects.acs import AcsHandlers
from isogloss.dialects.atoma import AtomaHandlers
from isogloss.dialects.mindie import MindIEHandlers
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.nim import NimHandlers
from isogloss.dialects.service import ServiceHandlers
from isogloss.engine.api import Engine
from isogloss.engine.media import MediaKind

if TYPE_CHECKING:  # what takes decoders, which not every environment has
    from isogloss.media.loader import MediaLoader


@dataclass(frozen=True, slots=True)
class Options:
    """What can be set about single dialects."""

    mindie: MindIEConfig = field(default_factory=MindIEConfig)
    media: MediaLoader | None = None
    """Gets pictures, films and sound for the dialects that take them; without it none does."""


_DEFAULTS = Options()


@dataclass(frozen=True, slots=True)
class Dialect:
    """One document's routes, with handlers behind them."""

    document: str
    """Its name, as `isogloss_api.document` takes it."""
    routes: object
    """One async method per operationId."""
    operations: tuple[Operation, ...]
    model: str | None = None
    """The name that requests use for the model; None for the engine's."""
    body_limit: int | None = None
    """Bytes of a request's body; None for what the document says."""


def _mindie(engine: Engine, options: Options) -> Dialect:
    config = options.mindie
    routes = mindie.Routes(MindIEHandlers(engine, config, options.media))
    return Dialect("mindie", routes, mindie.OPERATIONS, config.model_name, config.body_limit)


_BUILDERS: dict[str, Callable[[Engine, Options], Dialect]] = {
    "nim": lambda engine, _: Dialect("nim", nim.Routes(NimHandlers(engine)), nim.OPERATIONS),
    "atoma": lambda engine, _: Dialect("atoma", atoma.Routes(AtomaHandlers(engine)), atoma.OPERATIONS),
    "acs": lambda engine, _: Dialect("acs", acs.Routes(AcsHandlers(engine)), acs.OPERATIONS),
    "mindie": _mindie,
    "service": lambda engine, _: Dialect("service", service.Routes(ServiceHandlers(engine)), service.OPERATIONS),
}

DIALECTS = tuple(_BUILDERS)
"""Every name that `build` takes."""


_MEDIA: frozenset[str] = frozenset(get_args(MediaKind))
_HANDLED = frozenset({"best_of"})
"""Features that the handlers serve by themselves, with any engine."""


def features(engine: Engine, options: Options = _DEFAULTS) -> frozenset[str]:
    """The documents' `x-feature` marks that are served with this engine."""
    found = engine.features | _HANDLED
    if options.media is None:
        found -= _MEDIA
    # NIM's extensions are guides in another place.
    return found | {"nvext"} if "guided" in found else found


def build(name: str, engine: Engine, options: Options = _DEFAULTS) -> Dialect:
    """A dialect on an engine. Raises KeyError for a name that is not in DIALECTS."""
    return _BUILDERS[name](engine, options)
