"""Messages are sent after the commit, by whoever comes first, and no enqueue waits for a backend or fails with it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import cast

import asyncpg
import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.delivery.redis_server import RedisServer
from tests.worker.fleet import until

from fenceline import Fenceline
from fenceline.backends.arq import ArqBackend
from fenceline.backends.contract import Backend, BackendUnavailable
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.model.public_id import parse_id
from fenceline.runtime import sender as sender_module
from fenceline.runtime.sender import Sender
from fenceline.server.asgi_app import Server
from fenceline.server.server_settings import ServerSettings


@pytest.fixture
async def app(database: str, redis_url: str) -> AsyncIterator[Fenceline]:
    app = Fenceline(database, delivery="arq")
    await app.lanes.set("default", delivery="arq")
    yield app
    await app.close()


@pytest.fixture
async def backend(redis_url: str) -> AsyncIterator[ArqBackend]:
    backend = ArqBackend(redis_url)
    yield backend
    await backend.close()


async def received(backend: ArqBackend, count: int = 1) -> list[int]:
    found: list[int] = []

    async def came() -> bool:
        found.extend(await backend.receive("default", 100))
        return len(found) >= count

    await until(came, "messages")
    return found


async def test_an_enqueue_is_sent_after_its_commit(app: Fenceline, backend: ArqBackend) -> None:
    job = await app.enqueue("work")
    assert await received(backend) == [parse_id(job.id)]


async def test_blocking_code_sends_too(app: Fenceline, backend: ArqBackend) -> None:
    job = await asyncio.to_thread(app.sync.enqueue, "work")
    assert await received(backend) == [parse_id(job.id)]


async def test_what_a_transaction_enqueues_is_sent_by_others_after_the_commit(
    app: Fenceline, backend: ArqBackend, database: str
) -> None:
    connection = await asyncpg.connect(database)
    async with connection.transaction():
        job = await app.enqueue("work", connection=connection)
        assert await app_parts(app).sender(app_parts(app).database()).run_once() == 0
    await connection.close()  # and whoever enqueued it is gone
    assert await app_parts(app).sender(app_parts(app).database()).run_once() == 1
    assert await received(backend) == [parse_id(job.id)]


async def test_with_redis_away_an_enqueue_succeeds_with_a_warning_and_is_sent_when_it_is_back(
    app: Fenceline, backend: ArqBackend, redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis.kill()
    with caplog.at_level(logging.WARNING, "fenceline.delivery"):
        job = await app.enqueue("work")

        async def warned() -> bool:
            return "cannot be reached" in caplog.text

        await until(warned, "a warning")
    assert (await job.status()) == "queued"
    sender = app_parts(app).sender(app_parts(app).database())
    later = await app.enqueue("work")
    assert await sender.run_once() == 0
    redis.start()

    found: set[int] = set()

    async def came() -> bool:
        await app_parts(app).database().call(calls.upkeep.maintain(interval_seconds=0))
        await sender.run_once()
        found.update(await backend.receive("default", 100))
        return found == {parse_id(job.id), parse_id(later.id)}

    await until(came, "both messages")
    assert "answers again" in caplog.text


async def test_a_producer_measures_that_it_cannot_send(
    app: Fenceline, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
    sender = app_parts(app).sender(app_parts(app).database())

    async def away(count: int) -> bool:
        await sender.run_once()
        return measured(reader) == {"arq": count}

    redis.kill()
    await app.enqueue("work")
    await until(lambda: away(1), "the outage is measured")
    redis.start()
    await until(lambda: away(0), "its end is measured")
    provider.shutdown()


def measured(reader: InMemoryMetricReader) -> dict[object, object]:
    """The value of `fenceline.delivery.away`, by delivery."""
    found = reader.get_metrics_data()
    shown = [
        metric
        for resource in (found.resource_metrics if found else [])
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    points = [json.loads(point.to_json()) for metric in shown for point in metric.data.data_points]
    return {point["attributes"]["delivery"]: point["value"] for point in points}


async def test_what_waits_to_be_sent_is_measured(app: Fenceline, redis: RedisServer) -> None:
    redis.kill()
    for _ in range(3):
        await (
            app_parts(app)
            .database()
            .call(calls.enqueue.enqueue("work", "{}", "{}", actor=None, defaults=None, repeatable=False))
        )
    sender = app_parts(app).sender(app_parts(app).database())
    await until(lambda: _is_away(sender), "the outage is noticed")
    connection = await asyncpg.connect(await app.dsn())
    await connection.execute("delete from fenceline.message")
    await connection.close()
    [lane] = [lane for lane in await app.lanes.list() if lane.name == "default"]
    assert (lane.depth, lane.unsent) == (3, 3)
    [lane] = [lane for lane in await app.lanes.list() if lane.name == "interactive"]
    assert lane.unsent is None


async def _is_away(sender: Sender) -> bool:
    return sender._away_since is not None


async def test_a_server_sends_what_nobody_else_has(app: Fenceline, backend: ArqBackend, database: str) -> None:
    connection = await asyncpg.connect(database)
    async with Server(ServerSettings(), app).running():
        job_id = await connection.fetchval("select job_id from fenceline.enqueue('work')")
        assert await received(backend) == [job_id]
    await connection.close()


class SlowToAnswer:
    """A backend that has been away, and takes its time to say that it is back."""

    name = "slow"
    cannot = ()

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.asked = 0

    async def get_job_metadata(self, _backend_job_id: str) -> None:
        self.asked += 1
        await self.answers.wait()


async def test_who_asks_at_the_same_time_whether_it_is_back_counts_its_return_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def nothing_due(_call: object) -> list[object]:
        return []

    changes: list[int] = []
    monkeypatch.setattr(sender_module, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(Sender, "_measure", lambda _self, change: changes.append(change))
    backend = SlowToAnswer()
    sender = Sender(cast("Backend", backend), nothing_due)
    sender.note_away(BackendUnavailable("it is away"))
    asking = [asyncio.create_task(sender.run_once()) for _ in range(3)]

    async def all_ask() -> bool:
        return backend.asked == 3

    await until(all_ask, "all three ask", lambda: backend.asked)
    backend.answers.set()
    await asyncio.gather(*asking)
    assert changes == [1, -1]
    assert caplog.text.count("answers again") == 1
