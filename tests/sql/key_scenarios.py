"""The line of a key: it goes on whatever becomes of its head, and nobody waits for an open transaction."""

from collections.abc import Awaitable, Callable

from tests.sql.sessions import (
    Connect,
    Connection,
    claim,
    claim_one,
    enqueue,
    finish,
    maintain,
    many,
    register,
    status,
    without_waiting,
)

Change = Callable[[Connection, int], Awaitable[object]]


async def cancel(connection: Connection, job: int) -> None:
    await connection.execute("select fenceline.cancel_job($1)", job)


async def expire(connection: Connection, job: int) -> None:
    await connection.execute("update fenceline.deadline set expires_at = now() - interval '1 s' where job_id = $1", job)
    await maintain(connection)


async def lower(connection: Connection, job: int) -> None:
    await connection.execute("select fenceline.reprioritise_job($1, -5)", job)


async def raise_next(connection: Connection, job: int) -> None:
    behind = "select min(job_id) from fenceline.held where waiting_for = 'key' and job_id > $1"
    await connection.execute("select fenceline.reprioritise_job($1, 5)", await connection.fetchval(behind, job))


async def parked_behind(connection: Connection, worker: int, key: str) -> tuple[int, int]:
    """A key with places for two, of which one runs: who is first in line allows but one, and who comes next two."""
    for row in await claim(connection, worker, limit=9):
        await finish(connection, row)
    await enqueue(connection, key=key, key_limit=2)
    await claim_one(connection, worker)
    head = await enqueue(connection, key=key, key_limit=1, expires_at="2999-01-01T00:00:00Z")
    following = await enqueue(connection, key=key, key_limit=2)
    await maintain(connection)
    assert [await status(connection, job) for job in (head, following)] == ["waiting", "waiting"]
    return head, following


async def line_goes_on_without_its_head(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    changes: tuple[Change, ...] = (cancel, expire, lower, raise_next)
    for turn, change in enumerate(changes):
        head, following = await parked_behind(operator, worker, f"maintained {turn}")
        await change(operator, head)
        await maintain(operator)
        assert await status(operator, following) == "queued", change.__name__
        head, following = await parked_behind(operator, worker, f"claimed {turn}")
        await change(operator, head)
        assert [attempt.job_id for attempt in await claim(operator, worker)] == [following], change.__name__


async def line_stands_while_its_head_is_being_changed(connect: Connect) -> None:
    """Claims and maintenance of others wait for nobody; the order holds whether the change comes or not."""
    user, operator = await many(connect, 2)
    await operator.execute("set lock_timeout = '2s'")
    worker = await register(operator)
    for committed in (True, False):
        key = f"open until {committed}"
        await enqueue(operator, key=key, priority=9)
        holder = await claim_one(operator, worker)
        head, following = [await enqueue(operator, key=key) for _ in range(2)]
        await maintain(operator)
        transaction = user.transaction()
        await transaction.start()
        await cancel(user, head)
        plain = await enqueue(operator)
        assert await finish(operator, holder) == "accepted"
        await maintain(operator)
        assert [attempt.job_id for attempt in await claim(operator, worker, limit=9)] == [plain]
        assert await status(operator, following) == "waiting"
        await (transaction.commit() if committed else transaction.rollback())
        await maintain(operator)
        claimed = [attempt.job_id for attempt in await claim(operator, worker, limit=9)]
        assert claimed == [following if committed else head]


async def kept_keys_hold_up_no_other(connect: Connect) -> None:
    """Somebody has the locks of some keys, as a session does that is frozen while it admits: claims and maintenance go
    on at once, and other keys have their turn.
    """
    frozen, operator, observer = await many(connect, 3)
    worker = await register(operator)
    kept = [await enqueue(operator, key=f"kept {number}") for number in range(3)]
    async with frozen.transaction():
        for number in range(3):
            lock = "select pg_advisory_xact_lock(1179926086, fenceline.key_lock('default', $1))"
            await frozen.execute(lock, f"kept {number}")
        await without_waiting(observer, operator, others_have_their_turn(operator, worker))
    await maintain(operator)
    assert {attempt.job_id for attempt in await claim(operator, worker, limit=9)} == set(kept)


async def others_have_their_turn(operator: Connection, worker: int) -> None:
    plain = await enqueue(operator)
    assert (await claim_one(operator, worker, limit=9)).job_id == plain
    free = await enqueue(operator, key="free")
    for _ in range(2):  # those that are kept fill the first look
        await operator.execute("select fenceline.admit_keys(0, 3)")
    assert await status(operator, free) == "queued"
    assert (await claim_one(operator, worker, limit=9)).job_id == free
    await maintain(operator)


KEY_SCENARIOS = (
    line_goes_on_without_its_head,
    line_stands_while_its_head_is_being_changed,
    kept_keys_hold_up_no_other,
)
