"""Gates that meet: dedupe keys, resource locks, keys and dependencies, with user transactions left open."""

import asyncio
import json
from functools import partial

from tests.sql.sessions import (
    Attempt,
    Connect,
    Connection,
    claim,
    claim_one,
    count,
    enqueue,
    enqueue_or_find,
    finish,
    maintain,
    many,
    overlap,
    register,
    status,
)


async def dedupe_key_makes_one_job(connect: Connect) -> None:
    operator = await connect()
    for key in ("a", "b", "c"):
        (first, made), (second, made_too), waited = await overlap(
            connect,
            partial(enqueue_or_find, dedupe_key=key),
            partial(enqueue_or_find, dedupe_key=key),
        )
        assert (first, made, made_too) == (second, True, False)
        assert waited
    connections = await many(connect, 8)
    for turn in range(5):
        found = await asyncio.gather(*(enqueue(c, dedupe_key=f"turn {turn}") for c in connections))
        assert len(set(found)) == 1
    assert await count(operator, "ready") == 8


async def dedupe_key_is_free_after_a_rollback(connect: Connect) -> None:
    one, two = await many(connect, 2)
    transaction = one.transaction()
    await transaction.start()
    lost = await enqueue(one, dedupe_key="k")
    task = asyncio.create_task(enqueue_or_find(two, dedupe_key="k"))
    await transaction.rollback()
    job, made = await task
    assert made
    assert job != lost
    assert await status(one, job) == "queued"


async def dedupe_key_is_free_after_a_claim(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    first = await enqueue(operator, dedupe_key="k")
    claimed, (second, made), waited = await overlap(
        connect, lambda c: claim(c, worker), lambda c: enqueue_or_find(c, dedupe_key="k")
    )
    assert waited
    assert [attempt.job_id for attempt in claimed] == [first]
    assert made
    assert second != first
    # The other way round: whoever was answered with a job can rely on it, claimed or not.
    (found, made), claimed, waited = await overlap(
        connect, lambda c: enqueue_or_find(c, dedupe_key="k"), lambda c: claim(c, worker)
    )
    assert (found, made, waited) == (second, False, False)
    assert [attempt.job_id for attempt in claimed] == [second]


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


async def key_admits_one_while_claims_overlap(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    await enqueue(operator, key="k")

    async def enqueue_and_claim(connection: Connection) -> list[Attempt]:
        await enqueue(connection, key="k")
        return await claim(connection, worker)

    first, second, _ = await overlap(connect, lambda c: claim(c, worker), enqueue_and_claim)
    assert len(first) == 1
    assert second == [], "the key has one holder"
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
    dedupe_key_makes_one_job,
    dedupe_key_is_free_after_a_rollback,
    dedupe_key_is_free_after_a_claim,
    resource_lock_is_free_when_its_job_ends,
    last_two_children_release_the_fan_in_once,
    many_children_release_the_fan_in_once,
    late_waiter_is_released,
    early_waiter_is_released,
    waiter_unseen_by_an_old_snapshot_is_released,
    late_waiter_of_a_deleted_job_is_released,
    approval_and_dependencies_are_both_gates,
    key_admits_one_while_claims_overlap,
    freed_key_admits_the_next,
    open_user_transaction_holds_up_nobody,
)
