"""A worker inside the test's own process, for as long as a block lasts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.support.patience import eventually, seconds_left

from fenceline import Fenceline, Job
from fenceline.model.job import JobRecord
from fenceline.worker import lease_process, shutdown

#: A lease that a slow machine keeps, although the process that keeps it takes its time to start.
QUICK: dict[str, Any] = {"grace_seconds": 0.5, "lease_seconds": 60.0}
lease_process.LATER_SECONDS = 1.0  # tests with retries wait for what that process does
shutdown.GOODBYE_SECONDS = 20.0  # however slow the machine is, the database hears of the end


@contextlib.asynccontextmanager
async def running(app: Fenceline, **settings: Any) -> AsyncIterator["asyncio.Task[None]"]:
    worker = asyncio.create_task(app.run_worker(**{**QUICK, **settings}))
    try:
        yield worker
    finally:
        worker.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await worker
        finally:
            await app.close()


async def ended(job: Job[Any], timeout: float | None = None) -> JobRecord:
    await job.wait(seconds_left() if timeout is None else timeout)
    return await job.get()


async def until_running(job: Job[Any]) -> None:
    async def runs() -> bool:
        return (await job.get()).status == "running"

    await eventually(runs, f"{job.id} runs")
