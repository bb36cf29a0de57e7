"""A user leaves a transaction open: the work of others goes on, and claims stop when ends cannot be written."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.conftest import Connect
from tests.support.figures import Figures
from tests.support.patience import seconds_left
from tests.worker.fleet import Connection, Fleet, until
from tests.worker.in_process_worker import running

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.delivery.postgres_leases import PostgresLeases


async def test_an_open_cancel_holds_up_one_job_and_no_other(fleet: Fleet, connect: Connect) -> None:
    user = await connect()
    await fleet.started("--concurrency", "30")
    gate = fleet.folder / "gate"
    jobs = await fleet.enqueue("until_released", {"gate": str(gate)}, count=20)
    await fleet.handlers(20)
    async with user.transaction():
        await user.execute("select fenceline.cancel_job($1)", jobs[7])
        gate.touch()
        await fleet.ended(19)
        await fleet.enqueue("nap", count=20)
        await fleet.ended(39)
        assert await fleet.history(jobs[7]) == []
    await fleet.ended(40)
    await fleet.each_has_one_final_row(40)
    assert Counter(line.word for line in fleet.ledger()) == {"start": 40, "end": 40}


async def work_beside_a_held_lane(fleet: Fleet, connect: Connect) -> float:
    """How long the slowest job of another lane took."""
    slowest = 0.0
    user = await connect()
    await fleet.set_lane("interactive", slots=5)
    await fleet.started("--concurrency", "10")
    await fleet.waiting("interactive")
    async with user.transaction():
        await user.execute("select fenceline.set_lane('interactive', '{\"slots\": 6}')")
        await fleet.enqueue("nap", count=1, lane="interactive")
        for number in range(1, 6):
            began = time.monotonic()
            await fleet.enqueue("nap")
            await fleet.ended(number)
            slowest = max(slowest, time.monotonic() - began)
    await fleet.ended(6)
    return slowest


async def test_a_lane_that_somebody_holds_does_not_hold_up_the_others(fleet: Fleet, connect: Connect) -> None:
    """The lane is held until all jobs of the other one have ended."""
    await work_beside_a_held_lane(fleet, connect)


@pytest.mark.timing
async def test_how_long_jobs_take_beside_a_held_lane(fleet: Fleet, connect: Connect, figures: Figures) -> None:
    figures.at_most("the slowest of five jobs took", await work_beside_a_held_lane(fleet, connect), 5.0)


async def test_claims_stop_when_ends_cannot_be_written(database: str, connect: Connect) -> None:
    user, observer = await connect(), await connect()
    ran: Counter[int] = Counter()
    async with Fenceline(database) as app:

        @app.job()
        async def quick(n: int) -> None:
            ran[n] += 1
            await asyncio.sleep(0)

        async def most_claimed(at_least: int) -> int:
            """How many are claimed, when that does not grow any more."""
            before = -1
            while True:
                now = int(await observer.fetchval("select count(*) from fenceline.running"))
                if now == before and now >= at_least:
                    return now
                before = now
                await asyncio.sleep(1.0)

        async with running(app, batch=20, concurrency=5, lease_seconds=60.0) as worker:
            await quick.enqueue_many([{"n": n} for n in range(100)])
            await until(lambda: _ended(observer, 100), "the first have ended")
            async with user.transaction():
                await user.execute("lock table fenceline.history in share mode")
                await quick.enqueue_many([{"n": n} for n in range(100, 1100)])
                async with asyncio.timeout(seconds_left()):
                    assert 20 <= await most_claimed(20) <= 2 * 20 + 5 + 3 * 20
                assert ran.total() <= 100 + 2 * 20 + 5 + 3 * 20
            await until(lambda: _ended(observer, 1100), "all have ended")
            assert not worker.done()
    assert ran == dict.fromkeys(range(1100), 1)


async def _delete_what_is_past_its_retention(operator: Connection, user: Connection) -> None:
    job = await operator.fetchval("select job_id from fenceline.enqueue('old')")
    await operator.execute("select fenceline.cancel_job($1)", job)
    await operator.execute("select fenceline.set_retention(0, 'old')")
    await user.execute("select fenceline.delete_job($1)", job)


async def _take_the_key_of_a_schedule(operator: Connection, user: Connection) -> None:
    settings = '{"kind": "tick", "every": 60, "options": {"dedupe_key": "k"}}'
    await operator.execute("select fenceline.set_schedule('s', $1)", settings)
    due = "update fenceline.schedule set next_at = now() - interval '1 second', settled_at = now() - interval '1 hour'"
    await operator.execute(due)
    await user.execute("""select fenceline.enqueue('tick', '{}', '{"dedupe_key": "k"}')""")


async def _make_a_lane_that_jobs_miss(operator: Connection, user: Connection) -> None:
    await operator.execute("select fenceline.set_lane('x')")
    await operator.execute("""select fenceline.enqueue('work', '{}', '{"lane": "x"}')""")
    await operator.execute("delete from fenceline.lane where name = 'x'")  # as if the enqueue had been open meanwhile
    await user.execute("select fenceline.set_lane('x')")


@pytest.mark.parametrize(
    "leave_open", [_delete_what_is_past_its_retention, _take_the_key_of_a_schedule, _make_a_lane_that_jobs_miss]
)
async def test_maintenance_goes_on_beside_an_open_transaction(
    database: str, connect: Connect, leave_open: Callable[[Connection, Connection], Coroutine[Any, Any, None]]
) -> None:
    user, operator = await connect(), await connect()
    async with user.transaction(), Fenceline(database) as app:
        await leave_open(operator, user)
        leases = PostgresLeases(app_parts(app).database().connect, 30.0)
        maintaining = asyncio.create_task(leases.maintain())
        try:
            for _ in range(2):
                job = await app.enqueue("later", {}, run_in=1)
                await until(lambda: _is_queued(operator, job.id), "its time has come")  # noqa: B023 - called now
        finally:
            maintaining.cancel()
            await asyncio.wait({maintaining})
            await leases.close()


async def test_a_worker_starts_while_maintenance_is_held_up(fleet: Fleet, connect: Connect) -> None:
    """By somebody who rewrites a table of ours, say: a part of maintenance that no worker needs for its start."""
    user = await connect()
    async with user.transaction():
        await user.execute("lock table fenceline.schedule")
        worker = await fleet.started()
        assert "maintenance: a part had to be put off" in worker.output()
        await fleet.enqueue("nap")
        await fleet.ended(1)


async def _is_queued(observer: Connection, job_id: str) -> bool:
    return bool(await observer.fetchval("select status = 'queued' from fenceline.jobs where id = $1", job_id))


async def _ended(observer: Connection, count: int) -> bool:
    return int(await observer.fetchval("select count(*) from fenceline.history where final")) >= count
