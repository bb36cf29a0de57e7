"""An arq worker of somebody's own runs Fenceline's jobs beside its own."""

import asyncio
import contextlib
import importlib
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from arq.connections import create_pool
from arq.worker import Worker, func
from tests.delivery.redis_server import RedisServer
from tests.support.patience import eventually, seconds_left

from fenceline import Context, Fenceline
from fenceline.engine.engine import ImportNameMissing
from fenceline.model.worker_settings import WorkerSettings
from fenceline.testing.delivery import DeliveryConformance
from fenceline.worker import arq_part
from fenceline.worker.arq_part import ArqPart

pytestmark = [
    pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning"),  # by arq
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # stopped, arq closes no pipeline
]
QUICK = WorkerSettings(grace_seconds=0.5, lease_seconds=120.0)


@contextlib.asynccontextmanager
async def arq_working(part: ArqPart, *functions: Any, queue: str, **settings: Any) -> AsyncIterator[Worker]:
    worker = Worker(
        [part.function, *functions], queue_name=queue, redis_settings=part.redis_settings, on_startup=part.startup,
        on_shutdown=part.shutdown, poll_delay=0.02, handle_signals=False, **settings,
    )  # fmt: skip
    working = asyncio.create_task(worker.main())
    try:
        yield worker
    finally:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        calls = list(worker.tasks.values())
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls)
        worker.tasks.clear()  # or closing would raise what they were cancelled with
        await worker.close()


class TestArqPart(DeliveryConformance):
    """One queue for all lanes, as an arq worker reads but one."""

    delivery = "arq"

    @pytest.fixture
    def dsn(self, database: str, redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setenv("FENCELINE_REDIS_URL", redis.url)
        monkeypatch.setenv("FENCELINE_ARQ_QUEUE", "arq:queue")
        return database

    def patience_seconds(self) -> float:
        return seconds_left()

    @contextlib.asynccontextmanager
    async def working(self, app: Fenceline) -> AsyncIterator[None]:
        async with arq_working(ArqPart(app, settings=QUICK), queue="arq:queue"):
            yield


async def test_jobs_of_both_run_in_one_worker(database: str, redis_url: str) -> None:
    app = Fenceline(database, delivery="arq")

    @app.job(lane="mail")
    async def letter(ctx: Context, to: str) -> str:
        return f"dear {to}"

    seen: list[int] = []

    async def own(_ctx: dict[Any, Any], number: int) -> None:
        seen.append(number)

    async def own_has_run() -> bool:
        return bool(seen)

    await app.lanes.create("mail", delivery="arq")
    part = ArqPart(app, settings=QUICK)
    async with arq_working(part, func(own, name="own"), queue=part.queue_name("mail")):  # type: ignore[arg-type]  # arq's protocol has a __qualname__
        job = await letter.enqueue(to="ann")
        pool = await create_pool(part.redis_settings)
        await pool.enqueue_job("own", 7, _queue_name=part.queue_name("mail"))
        assert await job.result(timeout=seconds_left()) == "dear ann"
        await eventually(own_has_run, "arq's own job has run")
        await pool.aclose()
        record = await job.get()
        assert (record.delivery, record.backend_job_id) == ("arq", job.id)
    assert seen == [7]
    await app.close()


async def test_arq_does_not_start_where_the_jobs_cannot_run(database: str, redis_url: str) -> None:
    app = Fenceline(database, delivery="arq")

    @app.job(isolated=True)
    def apart() -> None: ...

    part = ArqPart(app, settings=QUICK)
    with pytest.raises(ImportNameMissing, match="kinds apart are isolated"):
        await part.startup({})
    await part.shutdown({})  # as arq does then
    await app.close()


async def test_isolated_handlers_run_beside_an_arq_worker(
    database: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCELINE_DSN", database)  # for the processes too
    monkeypatch.setenv("FENCELINE_DELIVERY", "arq")
    from tests.worker import isolated_app  # noqa: PLC0415 - its app reads them

    app: Fenceline = importlib.reload(isolated_app).app
    part = ArqPart(app, settings=WorkerSettings(grace_seconds=0.5), import_name="tests.worker.isolated_app:app")
    async with arq_working(part, queue=part.queue_name("default")):
        ran: Any = await (await app.enqueue("who")).result(timeout=seconds_left())
        assert ran["pid"] != os.getpid()
    await app.close()


async def test_schedules_are_made_known(database: str, redis_url: str) -> None:
    app = Fenceline(database, delivery="arq")

    @app.schedule("0 3 * * *")
    @app.job
    async def nightly() -> None: ...

    part = ArqPart(app, settings=QUICK)
    async with arq_working(part, queue=part.queue_name("default")):
        await eventually(app.schedules.list, "the schedule is known")
    await app.close()


async def test_arq_starts_and_stops_while_the_database_is_away(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arq_part, "START_SECONDS", 0.1)
    app = Fenceline("postgresql://127.0.0.1:1/nowhere", delivery="arq")

    @app.job
    async def work() -> None: ...

    part = ArqPart(app, settings=QUICK)
    async with asyncio.timeout(seconds_left()):
        await part.startup({})
        await part.shutdown({})
    await app.close()
