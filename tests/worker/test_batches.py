"""Small jobs come in batches, whatever else the app has handlers for."""

import asyncio
import contextlib

import pytest
from tests.conftest import Connect
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.engine import claim_policy

JOBS = 3000


async def test_quick_jobs_are_fetched_in_batches_beside_blocking_kinds(
    database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_policy, "QUICK_SECONDS", 60.0)  # on any machine
    app = Fenceline(database)

    @app.job()
    async def quick(n: int) -> None:
        pass

    @app.job()
    def blocking() -> None:
        """Never enqueued: that it could be must not make the claims of the others small."""

    jobs = await quick.enqueue_many([{"n": n} for n in range(JOBS)])
    worker = asyncio.create_task(app.run_worker(grace_seconds=0))
    try:
        for job in jobs[:: JOBS // 10]:
            assert await job.wait(timeout=seconds_left()) == "succeeded"
        assert await jobs[-1].wait(timeout=seconds_left()) == "succeeded"
    finally:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker
        await app.close()
    connection = await connect()
    # Ten at a time would be 300: the ten threads for blocking handlers must not be the measure.
    assert await connection.fetchval("select count(*) from fenceline.claim_request") < 100
