"""Rate limit, fairness and ageing, set and seen from Python, as a worker heeds them."""

import asyncio
from datetime import datetime

import pytest
from tests.conftest import Connect
from tests.sql.clock import clock_sql
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import running

from fenceline import Context, Fenceline
from fenceline.errors import InvalidLane


@pytest.fixture
def app(database: str) -> Fenceline:
    return Fenceline(database)


async def test_the_options_of_a_lane_are_set_and_shown(app: Fenceline) -> None:
    made = await app.lanes.create("imports", fair=True, rate_per_second=7.5, burst=3, ageing_seconds=60)
    assert (made.fair, made.rate_per_second, made.burst, made.ageing_seconds) == (True, 7.5, 3, 60)
    assert await app.lanes.get("imports") == made
    plain = await app.lanes.set("imports", fair=False, rate_per_second=None, burst=None, ageing_seconds=None)
    assert (plain.fair, plain.rate_per_second, plain.burst, plain.ageing_seconds) == (False, None, None, None)
    assert await asyncio.to_thread(app.sync.lanes.set, "imports", fair=True) == await app.lanes.get("imports")
    for wrong in ({"rate_per_second": 0}, {"burst": 0}, {"ageing_seconds": -1}, {"fair": "perhaps"}):
        with pytest.raises(InvalidLane):
            await app.lanes.set("imports", **wrong)
    await app.close()


async def test_a_worker_starts_no_more_than_the_rate(app: Fenceline) -> None:
    @app.job()
    async def work() -> None: ...

    await app.lanes.create("limited", rate_per_second=5, burst=2)
    jobs = await work.options(lane="limited").enqueue_many([{}] * 8)
    async with running(app):
        for job in jobs:
            await job.wait(timeout=seconds_left())
        records = [await job.get() for job in jobs]
    claimed = [record.claimed_at for record in records if record.claimed_at is not None]
    starts = sorted(claimed)
    assert len(starts) == 8
    # Two at once, then one every fifth of a second: in any span there are no more than that.
    for first in range(8):
        for last in range(first + 1, 8):
            span = (starts[last] - starts[first]).total_seconds()
            assert last - first + 1 <= 2 + 5 * span + 0.001
    assert isinstance(starts[0], datetime)


async def test_a_worker_serves_the_small_tenant_of_a_fair_lane_first(app: Fenceline) -> None:
    order: list[str] = []

    @app.job()
    async def work(ctx: Context) -> None:
        order.append(ctx.tenant)

    await app.lanes.create("shared", fair=True)
    large = await work.options(lane="shared", tenant="large").enqueue_many([{}] * 1000)
    small = await work.options(lane="shared", tenant="small").enqueue_many([{}] * 10)
    async with running(app, concurrency=4):
        for job in small:
            await job.wait(timeout=seconds_left())
        done = len(order)
        await large[-1].wait(timeout=seconds_left())
    last = max(place for place, tenant in enumerate(order) if tenant == "small")
    assert last < 200, f"the tenth of the small tenant was number {last} of {len(order)}"
    assert done <= len(order) == 1010


async def test_with_ageing_a_worker_starts_an_old_job_before_a_new_one_of_higher_priority(
    app: Fenceline, connect: Connect
) -> None:
    order: list[str] = []

    @app.job()
    async def work(name: str) -> None:
        order.append(name)

    connection = await connect()
    await connection.execute(clock_sql())
    await app.lanes.create("ageing", slots=1, ageing_seconds=1)
    old = await work.options(lane="ageing", priority=0).enqueue("old")
    await connection.execute("update public.test_clock set now = now + interval '2.2 seconds'")  # it has gained two
    new = await work.options(lane="ageing", priority=1).enqueue("new")
    urgent = await work.options(lane="ageing", priority=5).enqueue("urgent")
    async with running(app):
        for job in (old, new, urgent):
            await job.wait(timeout=seconds_left())
    assert order == ["urgent", "old", "new"]
