"""Leases of blocks outside handlers, with sessions that meet."""

from functools import partial
from uuid import UUID, uuid4

from tests.sql.lock_scenarios import attempts_of, take
from tests.sql.sessions import Connect, Connection, count, many, overlap


async def take_outside(connection: Connection, owner: UUID) -> int | None:
    text = "select fenceline.take_outside_lock('default', 'edition', '1', $1, '{}', 10, 'ann')"
    token: int | None = await connection.fetchval(text, owner)
    return token


async def keep(connection: Connection, owner: UUID) -> list[str]:
    rows = await connection.fetch("select word from fenceline.keep_outside_locks($1)", [owner])
    return [row["word"] for row in rows]


async def end_lease(connection: Connection) -> None:
    await connection.execute(
        "update fenceline.lock_lease set renewed_at = now() - interval '11 s', lease_until = now() - interval '1 s'"
    )


async def lease_that_is_renewed_is_not_ended(connect: Connect) -> None:
    """The renewal has begun, nobody can see it yet, and by what can be seen the lease is over."""
    operator = await connect()
    (attempt,) = await attempts_of(operator, 1)
    holder = uuid4()
    assert await take_outside(operator, holder)
    await end_lease(operator)
    kept, taken, waited = await overlap(
        connect, partial(keep, owner=holder), partial(take, attempt=attempt, name="1", owner=uuid4())
    )
    assert (kept, taken, waited) == ([], False, False)
    assert await count(operator, "attempt_lock", f"owner = '{holder}'") == 1
    assert await keep(operator, holder) == []


async def lease_that_is_ended_is_not_renewed(connect: Connect) -> None:
    """The other way round: the next has the lock, which nobody can see yet, when the renewal comes."""
    operator = await connect()
    (attempt,) = await attempts_of(operator, 1)
    holder = uuid4()
    assert await take_outside(operator, holder)
    await end_lease(operator)
    taken, kept, waited = await overlap(
        connect, partial(take, attempt=attempt, name="1", owner=uuid4()), partial(keep, owner=holder)
    )
    assert (taken, kept, waited) == (True, ["busy"], False)
    assert await keep(operator, holder) == ["lost"]


async def outside_lock_has_one_holder(connect: Connect) -> None:
    operator, one = await many(connect, 2)
    (attempt,) = await attempts_of(operator, 1)
    first, second, waited = await overlap(
        connect, partial(take_outside, owner=uuid4()), partial(take, attempt=attempt, name="1", owner=uuid4())
    )
    assert (first is not None, second, waited) == (True, False, True)
    assert await take_outside(one, uuid4()) is None
    assert await count(operator, "attempt_lock") == 1
    assert await count(operator, "lock_wait") == 2


OUTSIDE_LOCK_SCENARIOS = (
    lease_that_is_renewed_is_not_ended,
    lease_that_is_ended_is_not_renewed,
    outside_lock_has_one_holder,
)
