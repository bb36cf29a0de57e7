"""A queue and, as there may be no worker in these tests, somebody who does its jobs by SQL."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from tests.conftest import Connect

from fenceline import Fenceline, Job, SyncJob
from fenceline.model.public_id import parse_id


class Worker:
    """Claims and finishes jobs through the SQL functions, one call at a time."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", worker_id: int) -> None:
        self.connection = connection
        self.worker_id = worker_id

    async def claim(self, lane: str = "default", *, limit: int = 1) -> dict[int, UUID]:
        """The attempt of each claimed job."""
        rows = await self.connection.fetch(
            "select job_id, attempt_id from fenceline.claim_jobs($1, $2, $3)", self.worker_id, lane, limit
        )
        return {row["job_id"]: row["attempt_id"] for row in rows}

    async def wait_for_work(self, lane: str = "default") -> None:
        """Find nothing, and tell the database that this worker waits."""
        rows = await self.connection.fetch(
            "select * from fenceline.claim_jobs($1, $2, 1, p_wait_seconds => 60)", self.worker_id, lane
        )
        assert rows == []

    async def finish(
        self, job_id: int, attempt_id: UUID, outcome: str = "succeeded", *, result: Any = None, error: Any = None
    ) -> None:
        verdict = await self.connection.fetchval(
            "select fenceline.finish_attempt($1, $2, $3, $4, $5)",
            job_id,
            attempt_id,
            outcome,
            None if result is None else json.dumps(result),
            None if error is None else json.dumps(error),
        )
        assert verdict == "accepted"

    async def start(self, job: Job[Any] | SyncJob[Any], lane: str = "default") -> UUID:
        """Claim the next job, which must be this one."""
        attempts = await self.claim(lane)
        assert list(attempts) == [parse_id(job.id)]
        return attempts[parse_id(job.id)]

    async def run(
        self,
        job: Job[Any] | SyncJob[Any],
        outcome: str = "succeeded",
        *,
        lane: str = "default",
        result: Any = None,
        error: Any = None,
    ) -> None:
        """Claim the next job, which must be this one, and finish it."""
        attempt_id = await self.start(job, lane)
        await self.finish(parse_id(job.id), attempt_id, outcome, result=result, error=error)

    async def count_jobs(self) -> int:
        return int(await self.connection.fetchval("select count(*) from fenceline.job"))


@pytest.fixture
async def worker(connect: Connect) -> Worker:
    connection = await connect()
    worker_id = await connection.fetchval("select fenceline.register_worker('test', 3600)")
    return Worker(connection, worker_id)


@pytest.fixture
async def app(database: str) -> AsyncIterator[Fenceline]:
    async with Fenceline(database) as app:
        yield app
