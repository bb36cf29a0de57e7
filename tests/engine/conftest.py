"""One engine, two deliveries: each test runs with a worker and with a runner."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from tests.runner.conftest import LiveServer, make_runner, unreachable
from tests.server.conftest import make_token
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.delivery.messages import database_delivery
from fenceline.model.worker_settings import WorkerSettings
from fenceline.server.server_settings import ServerSettings
from fenceline.worker.in_process import InProcessWorker


@dataclass(frozen=True, slots=True)
class Side:
    """`app`: for handlers; `producer`: reaches the database; `work`: has somebody run the jobs for a block."""

    name: str
    app: Fenceline
    producer: Fenceline
    work: Callable[..., AbstractAsyncContextManager[InProcessWorker]]


@pytest.fixture(params=["worker", "runner"])
async def side(request: pytest.FixtureRequest, database: str) -> AsyncIterator[Side]:
    async with Fenceline(database) as producer:
        if request.param == "worker":
            async with Fenceline(database) as app:
                yield Side("worker", app, producer, lambda **options: _at_work(_worker(app, **options)))
            return
        live = LiveServer(producer, ServerSettings(token_cache_seconds=0.0))
        await live.start()
        try:
            token, handlers = await make_token(producer, "runner"), unreachable()

            def work(**options: Any) -> AbstractAsyncContextManager[InProcessWorker]:
                return _at_work(make_runner(handlers, live.url, token, **options))

            yield Side("runner", handlers, producer, work)
        finally:
            await live.stop()


def _worker(app: Fenceline, **options: Any) -> InProcessWorker:
    return InProcessWorker(app, WorkerSettings(**{"grace_seconds": 5.0, **options}), partial(database_delivery, app))


@contextlib.asynccontextmanager
async def _at_work(worker: InProcessWorker) -> AsyncIterator[InProcessWorker]:
    working = asyncio.create_task(worker.run())
    try:
        yield worker
        worker.stop()
        async with asyncio.timeout(seconds_left()):
            await working
    finally:
        working.cancel()
        await asyncio.wait({working})
