"""Losing Redis loses nothing: every job ends, once, and soon after Redis is back."""

import asyncio
from datetime import datetime

import pytest
from redis.asyncio import Redis
from tests.conftest import Connect
from tests.delivery.redis_server import RedisServer
from tests.support.figures import Figures
from tests.worker.fleet import Connection, until
from tests.worker.in_process_worker import running

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts

JOBS = 2_000
#: The last of them do not end before Redis is back, however fast the machine is.
HELD_FROM = 1_500
#: So long after Redis is back, or was flushed, the last job whose message was lost has been claimed.
LATEST_SECONDS = 5.0

DONE = "select count(*) from fenceline.jobs where status = 'succeeded'"


@pytest.fixture
def back() -> asyncio.Event:
    """Redis is back for good."""
    return asyncio.Event()


@pytest.fixture
def app(database: str, redis_url: str, back: asyncio.Event) -> Fenceline:
    app = Fenceline(database, delivery="arq")

    @app.job
    async def work(number: int) -> int:
        await asyncio.sleep(0.02)
        if number >= HELD_FROM:
            await back.wait()
        return number

    return app


async def lose_redis_twice(app: Fenceline, redis: RedisServer, back: asyncio.Event, connection: Connection) -> float:
    """In the middle of the jobs; how long after it was back the last job whose message was lost was claimed."""

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

    async def longest_delay() -> float:
        """In seconds, of the jobs whose messages were lost, while Redis was there to send them again."""
        seconds = await connection.fetchval(
            "select max(extract(epoch from claimed_at - case when claimed_at < $2 then $3::timestamptz else $4 end)) "
            "from fenceline.history where job_id = any($1)",
            flushed + killed, killed_at, flushed_at, back_at,
        )  # fmt: skip
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
        killed, killed_at = await lost()
        later = [await app.enqueue("work", {"number": JOBS}) for _ in range(5)]  # an enqueue needs no Redis
        assert not await has_done(JOBS)
        redis.start()
        back.set()
        back_at = await now()
        await until(lambda: has_done(JOBS + len(later)), "all jobs")
    ends = await connection.fetch(
        "select count(*) filter (where final) as final, count(*) as attempts from fenceline.history group by job_id"
    )
    assert len(ends) == JOBS + len(later)
    assert {(row["final"], row["attempts"]) for row in ends} == {(1, 1)}
    assert flushed
    assert killed
    return await longest_delay()


async def test_flushall_and_kill_in_the_middle_of_2000_jobs(
    app: Fenceline, redis: RedisServer, back: asyncio.Event, connect: Connect
) -> None:
    await lose_redis_twice(app, redis, back, await connect())


@pytest.mark.timing
async def test_how_soon_lost_messages_come_again(
    app: Fenceline, redis: RedisServer, back: asyncio.Event, connect: Connect, figures: Figures
) -> None:
    delay = await lose_redis_twice(app, redis, back, await connect())
    figures.at_most("the last job whose message was lost is claimed after", delay, LATEST_SECONDS)
