"""Losing Redis loses nothing: every job ends, once, and soon after Redis is back."""

import asyncio
from datetime import datetime

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.delivery.redis_server import RedisServer
from tests.worker.fleet import until
from tests.worker.in_process_worker import running

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts

JOBS = 2_000
#: So long after Redis is back the last job whose message was lost has been claimed.
LATEST_SECONDS = 5.0

DONE = "select count(*) from fenceline.jobs where status = 'succeeded'"


@pytest.fixture
def app(database: str, redis_url: str) -> Fenceline:
    app = Fenceline(database, delivery="arq")

    @app.job
    async def work(number: int) -> int:
        await asyncio.sleep(0.02)
        return number

    return app


@pytest.mark.alone
async def test_flushall_and_kill_in_the_middle_of_2000_jobs(app: Fenceline, redis: RedisServer, database: str) -> None:
    connection = await asyncpg.connect(database)

    async def has_done(count: int) -> bool:
        done = await connection.fetchval(DONE)
        assert isinstance(done, int)
        return done >= count

    async def now() -> datetime:
        moment = await connection.fetchval("select clock_timestamp()")
        assert isinstance(moment, datetime)
        return moment

    async def lost() -> tuple[list[int], datetime]:
        """The jobs whose messages are gone with Redis, and when."""
        return [row["job_id"] for row in await connection.fetch("select job_id from fenceline.message")], await now()

    async def latest(job_ids: list[int], since: datetime) -> float:
        seconds = await connection.fetchval(
            "select max(extract(epoch from claimed_at - $2)) from fenceline.history where job_id = any($1)",
            job_ids,
            since,
        )
        return float(seconds)

    async with running(app, concurrency=20):
        await app_parts(app).handlers["work"].enqueue_many([{"number": number} for number in range(JOBS)])
        await until(lambda: has_done(200), "200 jobs")
        client = Redis.from_url(redis.url)
        await client.flushall()
        await client.aclose()
        flushed, flushed_at = await lost()
        await until(lambda: has_done(700), "700 jobs")
        redis.kill()
        killed, _killed_at = await lost()
        await asyncio.sleep(1.0)
        later = [await app.enqueue("work", {"number": JOBS}) for _ in range(5)]  # an enqueue needs no Redis
        assert not await has_done(JOBS)
        redis.start()
        back_at = await now()
        await until(lambda: has_done(JOBS + len(later)), "all jobs", seconds=60)
    ends = await connection.fetch(
        "select count(*) filter (where final) as final, count(*) as attempts from fenceline.history group by job_id"
    )
    assert len(ends) == JOBS + len(later)
    assert {(row["final"], row["attempts"]) for row in ends} == {(1, 1)}
    assert flushed
    assert await latest(flushed, flushed_at) < LATEST_SECONDS
    assert killed
    assert await latest(killed, back_at) < LATEST_SECONDS
    await connection.close()
