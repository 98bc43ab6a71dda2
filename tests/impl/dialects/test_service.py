"""Health, models, metrics, and the registry of dialects."""

from __future__ import annotations

import pytest
from isogloss.dialects.registry import DIALECTS, build
from isogloss.dialects.service import ServiceHandlers
from isogloss.engine.api import EngineStatus
from isogloss_api import DOCUMENTS
from isogloss_spec.faults import Fault
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector


@pytest.mark.parametrize("name", DIALECTS)
def test_every_operation_has_a_route(engine, name):
    dialect = build(name, engine)
    assert dialect.document in DOCUMENTS
    assert all(callable(getattr(dialect.routes, operation.id)) for operation in dialect.operations)


def test_unknown_dialect(engine):
    with pytest.raises(KeyError):
        build("latin", engine)


@pytest.mark.parametrize("name", DIALECTS)
async def test_models(engine, name):
    reply = await build(name, engine).routes.list_models(None)
    assert reply.body == {
        "object": "list",
        "data": [{"id": "fake", "object": "model", "created": 7, "owned_by": "us", "max_model_len": 64}],
    }


@pytest.mark.parametrize("name", ["service", "nim", "atoma"])
async def test_ready(engine, name):
    routes = build(name, engine).routes
    assert (await routes.health_ready(None)).body["object"] == "health.response"
    engine.snapshot = EngineStatus(ready=False, running=0, waiting=0)
    with pytest.raises(Fault) as caught:
        await routes.health_ready(None)
    assert (caught.value.name, caught.value.values) == ("overloaded", {"retry_after": 1})


@pytest.mark.parametrize("name", ["service", "nim"])
async def test_live(engine, name):
    engine.snapshot = EngineStatus(ready=False, running=0, waiting=0)
    routes = build(name, engine).routes
    assert (await routes.health_live(None)).body["object"] == "health.response"


class Extra(Collector):
    def collect(self):
        yield GaugeMetricFamily("extra", "More.", 5)


async def test_metrics(engine):
    handlers = ServiceHandlers(engine, [Extra()])
    engine.snapshot = EngineStatus(True, 3, 4, 0.25, 1000, 2000)
    text = (await handlers.metrics()).body
    samples = {
        sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples
    }
    assert samples["isogloss_requests_running"] == 3
    assert samples["isogloss_requests_waiting"] == 4
    assert samples["isogloss_kv_cache_usage_ratio"] == 0.25
    assert samples["isogloss_prompt_tokens_total"] == 1000
    assert samples["isogloss_generation_tokens_total"] == 2000
    assert samples["process_resident_memory_bytes"] > 1e6
    assert samples["extra"] == 5
