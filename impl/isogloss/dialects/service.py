"""The routes beside the dialects: health, metrics, models."""

from __future__ import annotations

from collections.abc import Iterable

from isogloss_api.runtime import Reply
from isogloss_api.service import responses
from prometheus_client.registry import Collector

from isogloss.dialects import health
from isogloss.dialects.metrics import Exposition
from isogloss.dialects.models import model_list
from isogloss.engine.api import Engine


class ServiceHandlers:
    """Handlers of the document `service`. `collectors` add their metrics to those of engine and process."""

    def __init__(self, engine: Engine, collectors: Iterable[Collector] = ()) -> None:
        self._engine = engine
        self._exposition = Exposition(engine, collectors)

    async def health_live(self) -> Reply[responses.HealthState]:
        """Whether the process lives."""
        return Reply(health.live())

    async def health_ready(self) -> Reply[responses.HealthState]:
        """Whether the engine takes requests. Raises Fault `overloaded` while it does not."""
        return Reply(health.ready(self._engine))

    async def metrics(self) -> Reply[str]:
        """Figures in Prometheus text format."""
        return Reply(self._exposition.text())

    async def list_models(self) -> Reply[responses.ModelList]:
        """The models this server answers for."""
        return Reply(model_list(self._engine.card))
