"""`advance` moves the clock of a database that the test kit made, and of no other."""

from datetime import timedelta

import psycopg
import pytest

from fenceline import Context, Fenceline, Retry
from fenceline.testing import TestedApp
from fenceline.testing.clock import NoTestClock
from fenceline.testing.tested_app import under_test


async def test_time_passes_for_retries_and_delays(app: TestedApp) -> None:
    ticks: list[int] = []

    @app.job(retry=Retry(max_attempts=2, backoff="fixed", base=600))
    async def fickle(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise RuntimeError("not yet")
        return ctx.attempt

    @app.job
    async def tick() -> None:
        ticks.append(1)

    job = await fickle.enqueue()
    later = await tick.options(run_in=7200).enqueue()
    assert await app.drain(raises=False) == 1
    await app.advance(hours=1)
    assert await app.drain() == 1
    assert await job.result() == 2
    await app.advance(timedelta(minutes=50), minutes=20)
    assert await app.drain() == 1
    record = await later.get()
    assert (record.status, ticks) == ("succeeded", [1])
    assert record.finished_at is not None
    assert record.finished_at - record.created_at >= timedelta(hours=2)


async def test_time_passes_for_schedules(app: TestedApp) -> None:
    fired: list[str] = []

    @app.schedule(every=86_400)
    @app.job
    async def daily(ctx: Context) -> None:
        fired.append(str(ctx.job))

    await app.drain()  # the database knows the schedule now
    fired.clear()  # midnight may have come meanwhile
    for days in (1, 1, 3):
        await app.advance(days=days)
        assert await app.drain() == 1, "one makes up for all the ticks that nobody was there for"
    assert len(set(fired)) == 3


async def test_time_passes_for_waits(app: TestedApp) -> None:
    @app.job
    async def ask(ctx: Context) -> str:
        await ctx.sleep(hours=3)
        try:
            return str(await ctx.wait_for("answer", timeout=timedelta(days=1)))
        except TimeoutError:
            return "nobody answered"

    answered, ignored = await ask.enqueue(), await ask.enqueue()
    assert await app.drain() == 2
    assert await app.drain() == 0
    await app.advance(hours=3)
    assert await app.drain() == 2
    await answered.signal("answer", "yes")
    assert await app.drain() == 1
    await app.advance(days=1)
    assert await app.drain() == 1
    assert [await answered.result(), await ignored.result()] == ["yes", "nobody answered"]


async def test_new_ids_go_by_the_clock_too(app: TestedApp) -> None:
    @app.job
    async def work() -> None: ...

    first = await work.enqueue()
    await app.advance(days=400)
    second = await work.enqueue()
    assert (await second.get()).created_at - (await first.get()).created_at >= timedelta(days=400)


async def test_migrate_leaves_the_clock_alone(app: TestedApp) -> None:
    @app.job
    async def work() -> None: ...

    job = await work.options(run_in=3600).enqueue()
    await app.migrate()
    await app.advance(hours=1)
    assert await app.drain() == 1
    assert await job.status() == "succeeded"


async def test_the_clock_never_goes_back(app: TestedApp) -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        await app.advance(hours=-1)


async def test_a_database_of_migrate_has_no_such_clock(database: str) -> None:
    with under_test(Fenceline(database), database) as app:
        with pytest.raises(NoTestClock, match="fenceline_app"):
            await app.advance(hours=1)
        await app.close()
    with psycopg.connect(database) as connection:
        assert connection.execute("select to_regnamespace('fenceline_test')").fetchone() == (None,)
