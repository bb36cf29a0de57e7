"""Every delivery does what jobs may rely on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.runner.conftest import LiveServer
from tests.runner.conftest import running as run_runner
from tests.server.conftest import make_token
from tests.support.patience import seconds_left

from fenceline import Fenceline, Job
from fenceline.model.job import JobRecord
from fenceline.server.server_settings import ServerSettings
from fenceline.testing.delivery import DeliveryConformance


class OnTestDatabase(DeliveryConformance):
    @pytest.fixture
    def dsn(self, database: str) -> str:
        return database

    def patience_seconds(self) -> float:
        return seconds_left()


class TestPostgres(OnTestDatabase):
    pass


class TestArq(OnTestDatabase):
    delivery = "arq"

    @pytest.fixture(autouse=True)
    def _with_redis(self, redis_url: str) -> None:
        """Apps find it."""


class TestInline(OnTestDatabase):
    """Jobs run at the enqueue; what becomes claimable later, when the app is drained."""

    delivery = "inline"

    @contextlib.asynccontextmanager
    async def working(self, app: Fenceline) -> AsyncIterator[None]:
        await app.drain()
        yield

    async def ended(self, app: Fenceline, job: Job[Any]) -> JobRecord:
        async with asyncio.timeout(self.patience_seconds()):
            while (await job.get()).finished_at is None:
                await app.drain()
                await asyncio.sleep(0.02)
        return await job.get()

    # Nothing runs beside the one who enqueues.
    test_a_lane_never_runs_more_than_its_slots = None  # type: ignore[assignment]  # taken out
    test_a_running_job_is_asked_to_stop = None  # type: ignore[assignment]  # taken out
    test_what_a_worker_that_stops_has_begun_is_run_by_the_next = None  # type: ignore[assignment]  # taken out


class TestHttp(OnTestDatabase):
    """A runner: it has the app, and no database."""

    @contextlib.asynccontextmanager
    async def working(self, app: Fenceline) -> AsyncIterator[None]:
        async with Fenceline(await app.dsn()) as server_app:
            live = LiveServer(server_app, ServerSettings(token_cache_seconds=0.0))
            await live.start()
            try:
                token = await make_token(server_app, "runner")
                async with run_runner(app, live.url, token, grace_seconds=0.5):
                    yield
            finally:
                await live.stop()
