"""Upkeep beside everything else: long reads that keep locks from it, and what it must not forget."""

import asyncio

from tests.sql.sessions import Connect, claim, enqueue, finish, many, register

#: A claim that waits longer than this for upkeep's locks fails.
PATIENCE = "set lock_timeout = '4s'"
#: Upkeep that waits for an open transaction, which is not over before the end, fails.
NOT_FOR_EVER = "set statement_timeout = '10s'"


async def long_read_does_not_stall_claims_when_a_day_is_due(connect: Connect) -> None:
    reader, upkeep, worker, watcher = await many(connect, 4)
    await worker.execute(PATIENCE)
    worker_id = await register(worker)
    for _ in range(5):
        await enqueue(worker)
    partitions = "select count(*) from pg_inherits where inhparent = 'fenceline.job'::regclass"
    before = await watcher.fetchval(partitions)
    async with reader.transaction():
        await reader.execute("select count(*) from fenceline.job")
        making = asyncio.create_task(upkeep.fetchval("select fenceline.create_partitions(5)"))
        waits = "select exists (select from pg_locks where not granted and pid = $1)"
        while not making.done() and not await watcher.fetchval(waits, upkeep.get_server_pid()):
            await watcher.execute("select")
        assert len(await claim(worker, worker_id, limit=5)) == 5
        assert await making == 0
    # Not again for a minute: while it asks, everybody waits behind it.
    assert await upkeep.fetchval("select fenceline.create_partitions(5)") == 0
    minute = "update fenceline.maintenance set ran_at = ran_at - interval '1 minute' where task = 'partitions'"
    await upkeep.execute(minute)
    assert await upkeep.fetchval("select fenceline.create_partitions(5)") == 4
    assert await watcher.fetchval(partitions) == before + 2
    # Having got its locks it asks at once when there is something to do.
    assert await upkeep.fetchval("select fenceline.create_partitions(6)") == 2


async def kept_and_live_jobs_are_not_forgotten(connect: Connect) -> None:
    connection = await connect()
    worker = await register(connection)
    finished, live = await enqueue(connection), await enqueue(connection, priority=-1)
    [attempt] = await claim(connection, worker)
    assert await finish(connection, attempt) == "accepted"
    forget = "select forgotten from fenceline.forget_finished($1)"
    assert await connection.fetchval(forget, [finished, live]) == 0
    await connection.execute("select fenceline.set_retention(0, 'work')")
    assert await connection.fetchval(forget, [finished, live]) == 1
    left = await connection.fetch("select job_id from fenceline.jobs")
    assert [row["job_id"] for row in left] == [live]


async def chatty_job_is_forgotten_bit_by_bit(connect: Connect) -> None:
    connection = await connect()
    worker = await register(connection)
    job = await enqueue(connection)
    [attempt] = await claim(connection, worker)
    lines = '[{"message": "a"}, {"message": "b"}, {"message": "c"}, {"message": "d"}, {"message": "e"}]'
    write = "select fenceline.write_log($1, $2, cast(cast($3 as text) as jsonb))"
    assert await connection.fetchval(write, job, attempt.attempt_id, lines)
    assert await finish(connection, attempt) == "accepted"
    await connection.execute("select fenceline.set_retention(0, 'work')")
    forget = "select forgotten, more from fenceline.forget_finished($1, 2)"
    for left in (3, 1):
        assert tuple(*await connection.fetch(forget, [job])) == (0, True)
        assert await connection.fetchval("select count(*) from fenceline.log") == left
    assert tuple(*await connection.fetch(forget, [job])) == (1, False)
    assert await connection.fetchval("select count(*) from fenceline.log") == 0


async def jobs_that_somebody_holds_are_forgotten_later(connect: Connect) -> None:
    operator, user, upkeep = await many(connect, 3)
    await upkeep.execute(NOT_FOR_EVER)
    jobs = [await enqueue(operator) for _ in range(3)]
    for job in jobs:
        await operator.execute("select fenceline.cancel_job($1)", job)
    await operator.execute("select fenceline.set_retention(0, 'work')")
    forget = "select forgotten from fenceline.forget_finished($1)"
    async with user.transaction():
        await user.execute("select fenceline.delete_job($1)", jobs[0])
        await user.execute("select fenceline.erase_args($1)", jobs[1])
        assert await upkeep.fetchval(forget, jobs) == 1
    assert await upkeep.fetchval(forget, jobs) == 1
    assert await operator.fetchval("select count(*) from fenceline.jobs") == 0


async def tidying_up_waits_for_nobody(connect: Connect) -> None:
    """Jobs miss a lane that an open transaction is about to make again."""
    operator, user, upkeep = await many(connect, 3)
    await upkeep.execute(NOT_FOR_EVER)
    await operator.execute("select fenceline.set_lane('x')")
    async with user.transaction():
        await enqueue(user, lane="x")
        await operator.execute("select fenceline.delete_lane('x')")
    await operator.execute("insert into fenceline.waiter (lane, worker_id, until) values ('x', 1, '2024-01-01')")
    async with user.transaction():
        await user.execute("select fenceline.set_lane('x')")
        assert await upkeep.fetchval("select fenceline.tidy_up(0)")
        assert await operator.fetchval("select count(*) from fenceline.waiter") == 0
