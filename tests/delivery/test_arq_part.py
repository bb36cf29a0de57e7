"""An arq worker of somebody's own runs Fenceline's jobs beside its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from arq.connections import create_pool
from arq.worker import Worker, func
from tests.delivery.redis_server import RedisServer

from fenceline import Context, Fenceline
from fenceline.model.worker_settings import WorkerSettings
from fenceline.testing.delivery import DeliveryConformance
from fenceline.worker.arq_part import ArqPart

pytestmark = [
    pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning"),  # by arq
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # stopped, arq closes no pipeline
]
QUICK = WorkerSettings(grace_seconds=0.5, lease_seconds=10.0)


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

    await app.lanes.create("mail", delivery="arq")
    part = ArqPart(app, settings=QUICK)
    async with arq_working(part, func(own, name="own"), queue=part.queue_name("mail")):  # type: ignore[arg-type]  # arq's protocol has a __qualname__
        job = await letter.enqueue(to="ann")
        pool = await create_pool(part.redis_settings)
        await pool.enqueue_job("own", 7, _queue_name=part.queue_name("mail"))
        assert await job.result(timeout=60) == "dear ann"
        async with asyncio.timeout(60):
            while not seen:  # noqa: ASYNC110 - arq tells nobody
                await asyncio.sleep(0.02)
        await pool.aclose()
        record = await job.get()
        assert (record.delivery, record.backend_job_id) == ("arq", job.id)
    assert seen == [7]
    await app.close()
