"""Locks of attempts, and guards, with sessions that meet."""

import asyncio
from collections.abc import Sequence
from functools import partial
from uuid import UUID, uuid4

from tests.sql.sessions import (
    Attempt,
    Connect,
    Connection,
    claim,
    claim_one,
    count,
    end_lease,
    enqueue,
    finish,
    maintain,
    many,
    overlap,
    refusal,
    register,
    waits_or_ends,
)


async def attempts_of(connection: Connection, number: int) -> list[Attempt]:
    worker = await register(connection)
    for _ in range(number):
        await enqueue(connection)
    return await claim(connection, worker, limit=number)


async def take(connection: Connection, attempt: Attempt, name: str, owner: UUID, holding: Sequence[UUID] = ()) -> bool:
    text = "select fenceline.take_lock($1, $2, 'edition', $3, $4, $5)"
    taken = await connection.fetchval(text, attempt.job_id, attempt.attempt_id, name, owner, list(holding))
    assert isinstance(taken, bool)
    return taken


async def release(connection: Connection, attempt: Attempt, owner: UUID) -> UUID | None:
    following: UUID | None = await connection.fetchval("select fenceline.release_lock($1, $2)", attempt.job_id, owner)
    return following


async def guard(connection: Connection, attempt: Attempt, version: int, resource: str = "page") -> bool:
    text = "select fenceline.guard_newer($1, $2, $3, $4)"
    newest = await connection.fetchval(text, attempt.job_id, attempt.attempt_id, resource, version)
    assert isinstance(newest, bool)
    return newest


async def lock_has_one_holder(connect: Connect) -> None:
    operator, *connections = await many(connect, 9)
    attempts = await attempts_of(operator, 8)
    # The first has taken it, but nobody can see that yet.
    owners = [uuid4() for _ in attempts]
    first, second, waited = await overlap(
        connect,
        partial(take, attempt=attempts[0], name="1", owner=owners[0]),
        partial(take, attempt=attempts[1], name="1", owner=owners[1]),
    )
    assert (first, second, waited) == (True, False, True)
    assert await take(operator, attempts[0], "1", owners[0]), "asked again: the reply was lost"
    assert await take(operator, attempts[2], "2", uuid4()), "another name is another lock"
    for turn in range(10):
        owners = [uuid4() for _ in attempts]
        name = f"turn {turn}"
        taken = await asyncio.gather(
            *(take(c, a, name, o) for c, a, o in zip(connections, attempts, owners, strict=True))
        )
        assert sum(taken) == 1
        assert await count(operator, "attempt_lock", f"name = '{name}'") == 1
        assert await count(operator, "lock_wait", f"name = '{name}'") == 7


async def waiters_come_in_their_order(connect: Connect) -> None:
    operator = await connect()
    attempts = await attempts_of(operator, 4)
    a, b, c, d = ((attempt, uuid4()) for attempt in attempts)
    assert await take(operator, a[0], "1", a[1])
    assert not await take(operator, b[0], "1", b[1])
    assert not await take(operator, c[0], "1", c[1])
    assert await release(operator, *a) == b[1]
    # It is free now, but there is a line.
    assert not await take(operator, d[0], "1", d[1])
    assert not await take(operator, c[0], "1", c[1])
    assert await take(operator, b[0], "1", b[1])
    assert await release(operator, *b) == c[1]
    # The next in line gives up: the one behind it is told.
    assert await release(operator, *c) == d[1]
    assert not await take(operator, a[0], "1", a[1])
    assert await take(operator, d[0], "1", d[1])
    assert await release(operator, *d) == a[1]
    assert await take(operator, a[0], "1", a[1])
    assert await release(operator, *a) is None
    assert await release(operator, *a) is None, "harmless to repeat"
    assert await count(operator, "attempt_lock") == await count(operator, "lock_wait") == 0


async def place_in_line_is_kept_when_another_was_quicker(connect: Connect) -> None:
    """The lock is given back and taken by a newcomer between the look of one that has just lined up and its try."""
    one, two, operator = await many(connect, 3)
    a, b, c = ((attempt, uuid4()) for attempt in await attempts_of(operator, 3))
    assert await take(operator, a[0], "1", a[1])
    transaction = one.transaction()
    await transaction.start()
    assert not await take(one, b[0], "1", b[1])  # lined up, not yet visible
    assert await release(operator, *a) is None
    async with two.transaction():
        assert await take(two, c[0], "1", c[1])
        again = asyncio.create_task(take(one, b[0], "1", b[1]))
        assert await waits_or_ends(operator, one, again)
    assert not await again
    await transaction.commit()
    assert await release(two, *c) == b[1]
    assert await take(one, b[0], "1", b[1])


async def lock_of_a_dead_attempt_is_free(connect: Connect) -> None:
    operator, other = await many(connect, 2)
    worker = await register(operator)
    await enqueue(operator)
    lost = await claim_one(operator, worker)
    waiting, heir, late = await attempts_of(other, 3)
    zombie, gone, owner = uuid4(), uuid4(), uuid4()
    assert await take(operator, lost, "1", zombie)
    assert not await take(other, waiting, "1", gone)
    assert not await take(other, heir, "1", owner)
    assert await finish(other, waiting) == "accepted"
    assert not await take(other, heir, "1", owner), "its holder lives"
    await end_lease(operator, worker)
    await maintain(operator)
    assert await take(other, heir, "1", owner), "neither its holder nor the one ahead lives"
    assert await refusal(take(operator, lost, "1", zombie)) == "FL012"
    assert await release(operator, lost, zombie) is None
    assert not await take(other, late, "1", uuid4()), "what a dead attempt gives back is not its heir's"


async def stale_attempt_takes_no_lock(connect: Connect) -> None:
    operator = await connect()
    (attempt,) = await attempts_of(operator, 1)
    assert await finish(operator, attempt, "released") == "accepted"
    assert await refusal(take(operator, attempt, "1", uuid4())) == "FL012"
    assert await refusal(guard(operator, attempt, 1)) == "FL012"
    assert await count(operator, "attempt_lock") == await count(operator, "guard") == 0


async def lock_cycle_is_refused(connect: Connect) -> None:
    operator = await connect()
    for size in (1, 2, 3, 5):
        attempts = await attempts_of(operator, size)
        held = [uuid4() for _ in attempts]
        for number, attempt in enumerate(attempts):
            assert await take(operator, attempt, f"{size}/{number}", held[number])
        waits = [uuid4() for _ in attempts]
        for number, attempt in enumerate(attempts[:-1]):
            assert not await take(operator, attempt, f"{size}/{number + 1}", waits[number], [held[number]])
        closing = take(operator, attempts[-1], f"{size}/0", waits[-1], [held[-1]])
        assert await refusal(closing) == "FL022"
        # It has left no trace, and the others go on as soon as it gives its lock back.
        assert await count(operator, "lock_wait", f"name like '{size}/%'") == size - 1
        await release(operator, attempts[-1], held[-1])
        for number in reversed(range(size - 1)):
            assert await take(operator, attempts[number], f"{size}/{number + 1}", waits[number], [held[number]])
            await release(operator, attempts[number], waits[number])
            await release(operator, attempts[number], held[number])


async def siblings_do_not_wait_for_each_other(connect: Connect) -> None:
    """Two coroutines of one job: what one holds is no obstacle to what the other waits for."""
    operator = await connect()
    a, b = await attempts_of(operator, 2)
    left, right, others = uuid4(), uuid4(), uuid4()
    assert await take(operator, a, "x", left)
    assert await take(operator, b, "y", others)
    # One coroutine of `a` waits for y with nothing around it; so `b`, inside y, may wait for x.
    assert not await take(operator, a, "y", right)
    inner = uuid4()
    assert not await take(operator, b, "x", inner, [others])
    assert await release(operator, a, left) == inner
    assert await take(operator, b, "x", inner, [others])
    # And inside its own blocks: two coroutines, crosswise, can never end.
    p, q = uuid4(), uuid4()
    assert await take(operator, a, "p", p)
    assert await take(operator, a, "q", q)
    assert not await take(operator, a, "q", uuid4(), [p])
    assert await refusal(take(operator, a, "p", uuid4(), [q])) == "FL022"


async def dead_attempts_close_no_cycle(connect: Connect) -> None:
    operator = await connect()
    a, b, c = await attempts_of(operator, 3)
    x, y, z = uuid4(), uuid4(), uuid4()
    assert await take(operator, a, "x", x)
    assert await take(operator, b, "y", y)
    assert await take(operator, c, "z", z)
    assert not await take(operator, b, "x", uuid4(), [y])
    assert not await take(operator, c, "y", uuid4(), [z])
    assert await finish(operator, b, "released") == "accepted"
    # c waits for what the dead b held: that is no wait for x any more.
    assert not await take(operator, a, "z", uuid4(), [x])


async def older_version_does_not_pass_the_guard(connect: Connect) -> None:
    operator, *connections = await many(connect, 9)
    attempts = await attempts_of(operator, 8)
    a, b = attempts[:2]
    assert await guard(operator, a, 5)
    assert await guard(operator, a, 5), "the same again: a retry"
    assert not await guard(operator, b, 4)
    assert await guard(operator, b, 4, "another page")
    # The newer one is announced, but not yet visible: the older one must wait to see.
    newer, older, waited = await overlap(
        connect, partial(guard, attempt=b, version=9), partial(guard, attempt=a, version=8)
    )
    assert (newer, older, waited) == (True, False, True)
    for turn in range(10):
        passed = await asyncio.gather(
            *(
                guard(c, attempt, version, f"turn {turn}")
                for version, (c, attempt) in enumerate(zip(connections, attempts, strict=True))
            )
        )
        assert passed[-1], "the newest always passes"
        newest = await operator.fetchval("select version from fenceline.guard where resource = $1", f"turn {turn}")
        assert newest == 7


LOCK_SCENARIOS = (
    lock_has_one_holder,
    waiters_come_in_their_order,
    place_in_line_is_kept_when_another_was_quicker,
    lock_of_a_dead_attempt_is_free,
    stale_attempt_takes_no_lock,
    lock_cycle_is_refused,
    siblings_do_not_wait_for_each_other,
    dead_attempts_close_no_cycle,
    older_version_does_not_pass_the_guard,
)
