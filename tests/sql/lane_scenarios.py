"""Lanes that change under jobs: kinds that move, a lane that is deleted, slots that come late, open transactions."""

import asyncio

from tests.sql.sessions import (
    ISOLATIONS,
    Connect,
    claim,
    count,
    enqueue,
    finish,
    many,
    refusal,
    register,
    set_lane,
    status,
    waits_or_ends,
    without_waiting,
)


async def job_of_a_deleted_lane_moves_with_its_kind(connect: Connect) -> None:
    """Whatever gate it waits at: the lane was deleted while the enqueue was open."""
    producer, operator = await many(connect, 2)
    worker = await register(operator)
    for turn, isolation in enumerate(ISOLATIONS):
        old, new = f"old{turn}", f"new{turn}"
        await set_lane(operator, old)
        async with producer.transaction(isolation=isolation):
            queued = await enqueue(producer, lane=old)
            waiting = [
                await enqueue(producer, lane=old, needs_approval=True),
                await enqueue(producer, lane=old, after=[queued]),
                await enqueue(producer, lane=old, run_at="2999-01-01T00:00:00Z"),
                await enqueue(producer, lane=old, key=old, priority=9),
            ]
            await operator.execute("select fenceline.delete_lane($1)", old)
        await set_lane(operator, new, kinds=["work"])
        statuses = [await status(operator, job) for job in (queued, *waiting)]
        assert statuses == ["queued", "awaiting_approval", "waiting", "scheduled", "waiting"]
        await operator.execute("set statement_timeout = '10s'")
        for job in waiting:
            assert await operator.fetchval("select fenceline.cancel_job($1)", job) == "cancelled"
        [attempt] = await claim(operator, worker, lane=new)
        assert attempt.job_id == queued
        assert await finish(operator, attempt) == "accepted"
        await set_lane(operator, new, kinds=[])


async def late_job_is_ranked_as_its_lane_says_now(connect: Connect) -> None:
    """Its enqueue was open while the lane changed: it stands where it would have stood, once upkeep has seen it."""
    producer, operator = await many(connect, 2)
    changes: tuple[dict[str, object], ...] = (
        {"fair": True},
        {"ageing_seconds": 60},
        {"fair": False, "ageing_seconds": None},
        {"fair": True, "ageing_seconds": 60},
    )
    rank = "select lane, priority, own_priority, fair from fenceline.ready where job_id = $1"
    for change in changes:
        async with producer.transaction():
            late, other = [await enqueue(producer, lane=lane, priority=-2) for lane in ("interactive", "system")]
            await set_lane(operator, "interactive", **change)
        early = await enqueue(operator, lane="interactive", priority=-2)
        assert await operator.fetchrow(rank, late) != await operator.fetchrow(rank, early)
        unchanged = await operator.fetchrow(rank, other)
        await operator.execute("select fenceline.tidy_up(0)")
        assert await operator.fetchrow(rank, late) == await operator.fetchrow(rank, early)
        assert await operator.fetchrow(rank, other) == unchanged
    seqs = "select seq from fenceline.ready where job_id = any($1) order by job_id"
    first, second = [row["seq"] for row in await operator.fetch(seqs, [late, early])]
    assert 0 < second - first < 10_000 << 22, "the later one comes later, by less than ten seconds"


async def job_that_is_nowhere_is_named(connect: Connect) -> None:
    """It cannot be; should it be, verbs say so instead of looking for ever."""
    operator = await connect()
    await operator.execute("set statement_timeout = '10s'")
    job = await enqueue(operator)
    await operator.execute("delete from fenceline.ready where job_id = $1", job)
    for call in ("cancel_job($1)", "reprioritise_job($1, 3)", "retry_job($1)", "delete_job($1)", "approve_job($1)"):
        assert await refusal(operator.execute(f"select fenceline.{call}", job)) == "XX001", call


async def new_slots_count_what_runs_already(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    await set_lane(operator, "wide")
    for _ in range(8):
        await enqueue(operator, lane="wide")
    running = await claim(operator, worker, lane="wide", limit=3)
    assert len(running) == 3
    await set_lane(operator, "wide", slots=3)
    assert await claim(operator, worker, lane="wide", limit=8) == []
    await set_lane(operator, "wide", slots=None)
    running += await claim(operator, worker, lane="wide", limit=1)
    await set_lane(operator, "wide", slots=4)
    assert await claim(operator, worker, lane="wide", limit=8) == []
    await finish(operator, running[0])
    assert len(await claim(operator, worker, lane="wide", limit=8)) == 1
    assert await count(operator, "running", "lane = 'wide'") == 4


async def late_enqueue_is_not_dropped_with_its_day(connect: Connect) -> None:
    """It was open for longer than the retention, and commits while its day is being dropped."""
    producer, operator, dropper, reader = await many(connect, 4)
    for held in ({}, {"run_at": "2999-01-01T00:00:00Z"}, {"needs_approval": True}):
        day = await operator.fetchval("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")
        drop = "select forgotten from fenceline.drop_day($1, now() + interval '1 day', 10000)"
        async with reader.transaction():
            await reader.execute("lock table fenceline.log in share mode")  # so that it stops between its two looks
            async with producer.transaction():
                job = await enqueue(producer, **held)
                before = await status(producer, job)
                dropping = asyncio.create_task(dropper.fetchval(drop, day))
                assert await waits_or_ends(operator, dropper, dropping)
        assert await dropping == 0
        assert await operator.fetchval("select to_regclass('fenceline.job_' || $1)", day) is None
        assert await status(operator, job) == before
        assert await count(operator, "job", f"id = {job}") == 1
        await operator.execute("truncate fenceline.job_default")  # so that the day's partitions can be made again
        await operator.execute("delete from fenceline.ready; delete from fenceline.timer; delete from fenceline.held")
        await operator.execute("select fenceline.create_partitions()")


async def kept_lane_is_waited_for_once(connect: Connect) -> None:
    """A worker comes back at every poll: what it waits for one lane is missing to its others."""
    keeper, operator, observer = await many(connect, 3)
    worker = await register(operator)
    jobs = [await enqueue(operator, lane="interactive") for _ in range(2)]
    async with keeper.transaction():
        await set_lane(keeper, "interactive", slots=3)
        assert await claim(operator, worker, lane="interactive") == []
        for _ in range(3):
            again = claim(operator, worker, lane="interactive")
            assert await without_waiting(observer, operator, again) == []
    assert [attempt.job_id for attempt in await claim(operator, worker, lane="interactive")] == jobs[:1]
    # It was to be had: whoever has it next is waited for again.
    async with keeper.transaction():
        await set_lane(keeper, "interactive", slots=4)
        claiming = asyncio.create_task(claim(operator, worker, lane="interactive"))
        assert await waits_or_ends(observer, operator, claiming)
    assert [attempt.job_id for attempt in await claiming] == jobs[1:]


LANE_SCENARIOS = (
    kept_lane_is_waited_for_once,
    late_job_is_ranked_as_its_lane_says_now,
    job_of_a_deleted_lane_moves_with_its_kind,
    job_that_is_nowhere_is_named,
    new_slots_count_what_runs_already,
    late_enqueue_is_not_dropped_with_its_day,
)
