"""A worker inside the test's own process, for as long as a block lasts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fenceline import Fenceline, Job
from fenceline.model.job import JobRecord

QUICK: dict[str, Any] = {"grace_seconds": 0.5, "lease_seconds": 10.0}


@contextlib.asynccontextmanager
async def running(app: Fenceline, **settings: Any) -> AsyncIterator["asyncio.Task[None]"]:
    worker = asyncio.create_task(app.run_worker(**{**QUICK, **settings}))
    try:
        yield worker
    finally:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker
        await app.close()


async def ended(job: Job[Any], timeout: float = 30) -> JobRecord:
    await job.wait(timeout)
    return await job.get()


async def until_running(job: Job[Any]) -> None:
    async with asyncio.timeout(30):
        while (await job.get()).status != "running":  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)
