"""Gates that meet: resource locks, keys and dependencies, with user transactions left open."""

import asyncio
import contextlib
import json
from functools import partial

import asyncpg
from tests.sql.sessions import (
    Connect,
    Connection,
    claim,
    claim_one,
    count,
    enqueue,
    finish,
    maintain,
    many,
    overlap,
    register,
    status,
    waits_or_ends,
)


async def resource_lock_is_free_when_its_job_ends(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    for outcome in ("succeeded", "failed_for_good"):
        _, second, waited = await overlap(
            connect, lambda c: enqueue(c, resource_lock="r"), lambda c: enqueue(c, resource_lock="r")
        )
        assert (second, waited) == ("FL013", True)
        attempt = await claim_one(operator, worker)
        _, third, _ = await overlap(
            connect, partial(finish, attempt=attempt, outcome=outcome), lambda c: enqueue(c, resource_lock="r")
        )
        assert isinstance(third, int), third
        await operator.execute("select fenceline.cancel_job($1)", third)
    assert await count(operator, "resource_lock") == 0


async def last_two_children_release_the_fan_in_once(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    for _ in range(5):
        children = [await enqueue(operator) for _ in range(2)]
        parent = await enqueue(operator, after=children, priority=9)
        one, two = await claim(operator, worker, limit=2)
        answers = await overlap(connect, partial(finish, attempt=one), partial(finish, attempt=two))
        assert answers == ("accepted", "accepted", True)
        assert await status(operator, parent) == "queued"
        attempt = await claim_one(operator, worker, limit=9)
        assert (attempt.job_id, attempt.number) == (parent, 1)


async def many_children_release_the_fan_in_once(connect: Connect) -> None:
    operator, *connections = await many(connect, 7)
    worker = await register(operator)
    for _ in range(5):
        children = [await enqueue(operator) for _ in connections]
        parents = [await enqueue(operator, after=children) for _ in range(3)]
        attempts = await claim(operator, worker, limit=len(children))
        await asyncio.gather(*(finish(c, attempt) for c, attempt in zip(connections, attempts, strict=True)))
        assert [await status(operator, parent) for parent in parents] == ["queued"] * 3
        assert await count(operator, "dependency") == 0
        for attempt in await claim(operator, worker, limit=9):
            assert await finish(operator, attempt) == "accepted"


async def verify_until_done(connection: Connection) -> None:
    """A waiter is looked at until older transactions have ended, those of other databases included."""
    while await count(connection, "dependency_check"):
        await maintain(connection)


async def late_waiter_is_released(connect: Connect) -> None:
    """The waiter is not yet committed when the job that it waits for ends."""
    user, operator = await many(connect, 2)
    worker = await register(operator)
    for outcome, then in (("succeeded", "queued"), ("failed_for_good", "cancelled")):
        await enqueue(operator, priority=9)
        attempt = await claim_one(operator, worker)
        async with user.transaction():
            waiter = await enqueue(user, after=[attempt.job_id])
            assert await finish(operator, attempt, outcome) == "accepted"
            await maintain(operator)
        assert await status(operator, waiter) == "waiting"
        await maintain(operator)
        assert await status(operator, waiter) == then


async def early_waiter_is_released(connect: Connect) -> None:
    """The end is not yet committed when the waiter is, and the resolver looks in between, again and again."""
    finisher, operator = await many(connect, 2)
    worker = await register(operator)
    for outcome, then in (("succeeded", "queued"), ("failed_for_good", "cancelled")):
        await enqueue(operator, priority=9)
        attempt = await claim_one(operator, worker)
        async with finisher.transaction():
            assert await finish(finisher, attempt, outcome) == "accepted"
            waiter = await enqueue(operator, after=[attempt.job_id])
            for _ in range(3):
                await maintain(operator)
            assert await status(operator, waiter) == "waiting"
        await maintain(operator)
        assert await status(operator, waiter) == then
        await verify_until_done(operator)


async def waiter_unseen_by_an_old_snapshot_is_released(connect: Connect) -> None:
    """The end is written in a REPEATABLE READ transaction that began before the waiter came."""
    finisher, operator = await many(connect, 2)
    worker = await register(operator)
    await enqueue(operator)
    attempt = await claim_one(operator, worker)
    async with finisher.transaction(isolation="repeatable_read"):
        await finisher.execute("select from fenceline.setting")  # takes the snapshot
        waiter = await enqueue(operator, after=[attempt.job_id])
        await verify_until_done(operator)
        assert await finish(finisher, attempt) == "accepted"
    await maintain(operator)
    assert await status(operator, waiter) == "queued"


async def late_waiter_of_a_deleted_job_is_released(connect: Connect) -> None:
    user, operator = await many(connect, 2)
    worker = await register(operator)
    for policy, then in (("always", "queued"), ("success", "cancelled")):
        await enqueue(operator, priority=9)
        attempt = await claim_one(operator, worker)
        async with user.transaction():
            waiter = await enqueue(user, after={"jobs": [attempt.job_id], "policy": policy})
            assert await finish(operator, attempt) == "accepted"
            await operator.execute("select fenceline.delete_job($1)", attempt.job_id)
        await maintain(operator)
        assert await status(operator, waiter) == then


async def every_waiter_is_looked_at_while_an_old_transaction_is_open(connect: Connect) -> None:
    """More waiters than one look takes stand before an early one, and all must be looked at again."""
    old, finisher, operator = await many(connect, 3)
    worker = await register(operator)
    async with old.transaction():
        await old.fetchval("select pg_current_xact_id()")
        endless = await enqueue(operator, needs_approval=True)
        many_waiters = "select cardinality(job_ids) from fenceline.enqueue_many('work', array_fill('{}'::json, $1), $2)"
        await operator.execute(many_waiters, [2100], json.dumps({"after": [endless]}))
        for _ in range(3):
            await maintain(operator)
        await enqueue(operator)
        attempt = await claim_one(operator, worker)
        async with finisher.transaction():
            assert await finish(finisher, attempt) == "accepted"
            early = await enqueue(operator, after=[attempt.job_id])
            await maintain(operator)
            assert await count(operator, "dependency_check", "seen_xid is null") == 0
        for _ in range(4):
            await maintain(operator)
        assert await status(operator, early) == "queued"
        assert await count(operator, "dependency_check") == 2101


async def failed_dependency_ends_its_waiter(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    for outcome, then in (("failed_for_good", "cancelled"), ("succeeded", "queued")):
        await enqueue(operator, priority=9)
        attempt = await claim_one(operator, worker)
        waiter = await enqueue(operator, after=[attempt.job_id])
        assert await finish(operator, attempt, outcome=outcome) == "accepted"
        assert await status(operator, waiter) == then


async def approval_and_dependencies_are_both_gates(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    for approved_first in (True, False):
        await enqueue(operator, priority=9)
        attempt = await claim_one(operator, worker)
        job = await enqueue(operator, after=[attempt.job_id], needs_approval=True)
        if approved_first:
            assert await operator.fetchval("select fenceline.approve_job($1)", job) == "waiting"
            assert await finish(operator, attempt) == "accepted"
        else:
            assert await finish(operator, attempt) == "accepted"
            assert await status(operator, job) == "awaiting_approval"
            assert await operator.fetchval("select fenceline.approve_job($1)", job) == "queued"
        assert await status(operator, job) == "queued"


async def approval_that_is_demanded_cannot_be_left_out(connect: Connect) -> None:
    operator = await connect()
    declare = "select fenceline.declare_kinds($1)"
    await operator.execute(declare, '{"work": {"needs_approval": true}, "free": {"needs_approval": false}}')
    await operator.execute("""select fenceline.set_lane('careful', '{"needs_approval": true, "kinds": ["listed"]}')""")
    for kind, options in (
        ("work", "{}"), ("work", '{"needs_approval": false}'), ("work", '{"priority": 3}'), ("listed", "{}"),
        ("listed", '{"lane": "default"}'), ("free", '{"lane": "careful"}'),
    ):  # fmt: skip
        job = await operator.fetchval("select job_id from fenceline.enqueue($1, '{}', $2)", kind, options)
        assert await status(operator, job) == "awaiting_approval", (kind, options)
    each = "select job_ids from fenceline.enqueue_each($1, $2, $3)"
    for kind in ("work", "listed"):
        for job in await operator.fetchval(each, kind, ["{}", "{}"], ['{"key": "a"}', '{"key": "b"}']):
            assert await status(operator, job) == "awaiting_approval", kind
    job = await operator.fetchval("select job_id from fenceline.enqueue('free')")
    assert await status(operator, job) == "queued"


async def nobody_approves_his_own_job(connect: Connect) -> None:
    operator = await connect()
    options = '{"needs_approval": true}'
    job = await operator.fetchval("select job_id from fenceline.enqueue('work', '{}', $1, 'ann')", options)
    with contextlib.suppress(asyncpg.PostgresError):
        await operator.fetchval("select fenceline.approve_job($1, 'ann')", job)
    assert await status(operator, job) == "awaiting_approval"
    await operator.execute("select fenceline.set_approval(false)")
    assert await operator.fetchval("select fenceline.approve_job($1, 'ann')", job) == "queued"


async def key_admits_one_while_claims_overlap(connect: Connect) -> None:
    """The second claim begins before the first is committed. Were it to count the holders, it would be held up, by a
    table that somebody locks, before it looks at the line, and go on after that commit with a count from before it.
    """
    operator, one, two, locker, observer = await many(connect, 5)
    worker = await register(operator)
    await enqueue(operator, key="k")
    first, locks = one.transaction(), locker.transaction()
    await first.start()
    assert len(await claim(one, worker)) == 1
    await enqueue(operator, key="k")
    await locks.start()
    locking = asyncio.create_task(locker.execute("lock table fenceline.held"))
    assert await waits_or_ends(observer, locker, locking)
    second = asyncio.create_task(claim(two, worker))
    waited = await waits_or_ends(observer, two, second)
    await first.commit()
    await locking
    await locks.commit()
    assert await second == [], "the key has one holder"
    assert not waited, "claims of every lane come by here"
    await maintain(operator)
    assert await count(operator, "key_holder") == 1
    assert await claim(operator, worker) == []


async def freed_key_admits_the_next(connect: Connect) -> None:
    operator, *connections = await many(connect, 5)
    worker = await register(operator)
    jobs = [await enqueue(operator, key="k") for _ in range(6)]
    done: list[int] = []
    attempt = await claim_one(operator, worker, limit=9)
    while True:
        done.append(attempt.job_id)
        _, early, waited = await overlap(connect, partial(finish, attempt=attempt), lambda c: claim(c, worker, limit=9))
        assert (early, waited) == ([], False), "the holder's end is not committed"
        if len(done) == len(jobs):
            break
        shares = await asyncio.gather(*(claim(c, worker, limit=9) for c in connections))
        claimed = [attempt for share in shares for attempt in share] or await claim(operator, worker)
        assert len(claimed) == 1, "one at a time"
        attempt = claimed[0]
        assert await count(operator, "running") == 1
    assert done == jobs, "in order"


async def open_user_transaction_holds_up_nobody(connect: Connect) -> None:
    user, operator = await many(connect, 2)
    await operator.execute("set lock_timeout = '2s'")
    worker = await register(operator)
    holder = await enqueue(operator, key="k", priority=5)
    attempt = await claim_one(operator, worker)
    assert attempt.job_id == holder
    parked = await enqueue(operator, key="k")
    plain = await enqueue(operator)
    async with user.transaction():
        await enqueue(user, key="k", dedupe_key="d", resource_lock="r")
        waiter = await enqueue(user, after=[holder], priority=8)
        await enqueue(user, needs_approval=True)
        assert await finish(operator, attempt) == "accepted"
        claimed = await claim(operator, worker, limit=9)
        assert {a.job_id for a in claimed} == {parked, plain}
        await maintain(operator)
        for a in claimed:
            assert await finish(operator, a) == "accepted"
    await maintain(operator)
    assert await status(operator, waiter) == "queued"
    assert len(await claim(operator, worker, limit=9)) == 2


async def group_is_complete_before_it_is_waited_for(connect: Connect) -> None:
    operator = await connect()
    jobs = [
        {"kind": "whole", "after": {"group": "g"}},
        {"kind": "part", "group": "g", "after": ["@first"]},
        {"kind": "part", "group": "g", "ref": "first"},
    ]
    made = await operator.fetchval("select job_ids from fenceline.enqueue_jobs($1)", json.dumps(jobs))
    waits_for = await operator.fetchval("select after from fenceline.job where id = $1", made[0])
    assert waits_for == sorted(made[1:])


GATE_SCENARIOS = (
    group_is_complete_before_it_is_waited_for,
    resource_lock_is_free_when_its_job_ends,
    last_two_children_release_the_fan_in_once,
    many_children_release_the_fan_in_once,
    late_waiter_is_released,
    early_waiter_is_released,
    waiter_unseen_by_an_old_snapshot_is_released,
    late_waiter_of_a_deleted_job_is_released,
    every_waiter_is_looked_at_while_an_old_transaction_is_open,
    failed_dependency_ends_its_waiter,
    approval_and_dependencies_are_both_gates,
    approval_that_is_demanded_cannot_be_left_out,
    nobody_approves_his_own_job,
    key_admits_one_while_claims_overlap,
    freed_key_admits_the_next,
    open_user_transaction_holds_up_nobody,
)
