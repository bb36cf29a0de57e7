"""Handlers that wait outside their slot."""

import asyncio
from typing import Any

import pytest
from tests.conftest import Connect
from tests.context.conftest import Work
from tests.context.sample import FLAVOURS
from tests.context.test_steps import what_ran
from tests.support.patience import seconds_left
from tests.worker.fleet import until
from tests.worker.in_process_worker import ended

from fenceline import Context, Fenceline, Job
from fenceline.errors import InvalidArgs, InvalidName, InvalidOption, WrongStatus


async def waits(job: Job[Any]) -> None:
    async def is_waiting() -> bool:
        return (await job.get()).waiting_for == "signal"

    await until(is_waiting, f"{job.id} waits for its signal")


@pytest.mark.parametrize("flavour", FLAVOURS)
async def test_a_handler_goes_on_where_it_waited(app: Fenceline, work: Work, connect: Connect, flavour: str) -> None:
    async with work():
        job = await app.enqueue(f"ask.{flavour}", max_attempts=1)
        await waits(job)
        assert (await job.signal("answer", {"n": 1})) == "queued"
        record = await ended(job)
        assert record.result == [{"n": 1}, 1], "waits use no attempt up"
        steps = [(step.name, step.status) for step in await job.steps()]
        attempts = [attempt.outcome for attempt in await job.attempts()]
    assert await what_ran(connect) == ["ask", "thank"]
    assert steps == [(name, "done") for name in ("ask", "sleep", "wait:answer", "thank", "wait:more")]
    assert attempts == ["snoozed", "snoozed", "snoozed", "succeeded"]


async def test_signals_before_the_wait_are_kept_in_order(app: Fenceline, work: Work) -> None:
    @app.job()
    async def collect(ctx: Context) -> list[Any]:
        return [await ctx.wait_for("word") for _ in range(3)]

    job = await collect.enqueue()
    for number in range(3):
        assert await job.signal("word", number) == "queued"
    async with work():
        assert await job.result(timeout=seconds_left()) == [0, 1, 2]
        assert len(await job.attempts()) == 1, "there was nothing to wait for"
        with pytest.raises(WrongStatus, match="cannot be signalled: it is succeeded"):
            await job.signal("word")


async def test_many_waits_at_once_take_a_signal_each(app: Fenceline, work: Work) -> None:
    @app.job()
    async def both(ctx: Context) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.wait_for(name)) for name in ("left", "right")]
        return [task.result() for task in tasks]

    async with work():
        job = await both.enqueue()
        await waits(job)
        await job.signal("right", 2)
        await job.signal("left", 1)
        assert await job.result(timeout=seconds_left()) == [1, 2]


async def test_what_cannot_be_waited_for_is_refused(app: Fenceline, work: Work) -> None:
    @app.job()
    async def wrong(ctx: Context) -> list[str]:
        refused = []
        for wait in (ctx.sleep(-1), ctx.wait_for("No Name"), ctx.wait_for("a", timeout=-1), ctx.callback_url("a")):
            try:
                await wait
            except (InvalidOption, InvalidName) as error:
                refused.append(type(error).__name__)
        async with ctx.transaction() as conn:
            try:
                await ctx.wait_for("a")
            except InvalidOption:
                conn.result = [*refused, "in a transaction"]
        return []

    async with work():
        job = await wrong.enqueue()
        names = ["InvalidOption", "InvalidName", "InvalidOption", "InvalidOption", "in a transaction"]
        assert (await ended(job)).result == names
    other = await wrong.enqueue()
    with pytest.raises(InvalidArgs, match="payload of signal 'a'"):
        await other.signal("a", float("nan"))


async def test_a_signal_comes_with_the_senders_transaction(app: Fenceline, connect: Connect) -> None:
    job = await app.enqueue("ask.async")
    connection = await connect()
    transaction = connection.transaction()
    await transaction.start()
    await job.signal("answer", 1, connection=connection)
    await transaction.rollback()
    assert await connection.fetchval("select count(*) from fenceline.signal") == 0
    assert app.sync.jobs.handle(job.id).signal("answer", 1) == "queued"
    assert await connection.fetchval("select count(*) from fenceline.signal") == 1


async def test_a_thousand_jobs_that_wait_hold_no_slot(app: Fenceline, work: Work, connect: Connect) -> None:
    connection = await connect()
    await app.lanes.set("default", slots=20)

    @app.job()
    async def wait(ctx: Context) -> Any:
        return await ctx.wait_for("go")

    @app.job()
    async def plain() -> int:
        return 1

    jobs = await wait.enqueue_many([{}] * 1000)

    async def all_wait() -> bool:
        return (
            int(await connection.fetchval("select count(*) from fenceline.held where waiting_for = 'signal'")) == 1000
        )

    async with work():
        await until(all_wait, "1000 jobs wait")
        assert await connection.fetchval("select count(*) from fenceline.running") == 0
        assert (await app.lanes.get("default")).in_use == 0
        assert await (await plain.enqueue()).result(timeout=seconds_left()) == 1
        await connection.execute("select fenceline.signal_job(job_id, 'go', to_jsonb(job_id)) from fenceline.held")
        for job in jobs[:: len(jobs) - 1]:
            await job.wait(seconds_left())

        async def all_ended() -> bool:
            return int(await connection.fetchval("select count(*) from fenceline.history where final")) == 1001

        await until(all_ended, "all have their signal")
    taken = await connection.fetchval(
        "select count(*) from fenceline.history h join fenceline.signal s on s.job_id = h.job_id "
        "where h.final and h.outcome = 'succeeded' and h.result = to_jsonb(h.job_id) and s.taken_at is not null"
    )
    assert taken == 1000
