"""What a scraper sees of the engine and the process, in Prometheus text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from isogloss.engine.api import Engine


class EngineCollector(Collector):
    """Asks the engine at each scrape, so that nothing is counted twice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """One sample each; ratios are 0 to 1."""
        status = self._engine.status()
        yield GaugeMetricFamily("isogloss_requests_running", "Requests being worked on.", status.running)
        yield GaugeMetricFamily("isogloss_requests_waiting", "Requests not yet started.", status.waiting)
        yield GaugeMetricFamily(
            "isogloss_kv_cache_usage_ratio", "Share of KV cache blocks in use.", status.kv_cache_usage
        )
        yield CounterMetricFamily("isogloss_prompt_tokens", "Prompt tokens taken in.", status.prompt_tokens)
        yield CounterMetricFamily("isogloss_generation_tokens", "Tokens generated.", status.generated_tokens)


class Exposition:
    """The text of one server's metrics: engine, process, and whatever collectors the caller adds."""

    def __init__(self, engine: Engine, collectors: Iterable[Collector] = ()) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        for collector in (EngineCollector(engine), *collectors):
            self._registry.register(collector)

    def text(self) -> str:
        """All metrics as they are now."""
        return generate_latest(self._registry).decode()
