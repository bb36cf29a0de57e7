"""Transactions that somebody leaves open, and sessions that freeze: nobody else waits for them, and nothing is lost
when they end, one way or the other.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

from tests.sql.gate_scenarios import verify_until_done
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
    many,
    register,
    status,
)

#: What is not held up by an open transaction does not come near this.
LONG = "5s"


class RolledBackError(Exception):
    """Ends a transaction without its effect."""


async def impatient(connect: Connect) -> Connection:
    """A session that gives up, and so fails, when it has to wait."""
    connection = await connect()
    await connection.execute(f"set statement_timeout = '{LONG}'")
    return connection


async def finish_many(connection: Connection, attempts: list[Attempt]) -> list[str]:
    """Those that were not accepted."""
    rows = await connection.fetch(
        "select verdict from fenceline.finish_attempts($1, $2)",
        [attempt.job_id for attempt in attempts],
        [attempt.attempt_id for attempt in attempts],
    )
    return [row["verdict"] for row in rows]


async def maintained(connection: Connection) -> str:
    """The parts of maintenance that were held up, as the database says it."""
    return str(await connection.fetchval("select fenceline.maintain(0) ->> 'blocked'"))


async def approve(connection: Connection, job_id: int) -> None:
    await connection.execute("select fenceline.approve_job($1)", job_id)


async def cancel(connection: Connection, job_id: int) -> None:
    await connection.execute("select fenceline.cancel_job($1)", job_id)


async def reprioritise(connection: Connection, job_id: int) -> None:
    await connection.execute("select fenceline.reprioritise_job($1, 7)", job_id)


#: A verb on a waiter that also awaits approval; its status after a commit, and after a rollback.
VERBS: tuple[tuple[Callable[[Connection, int], Awaitable[None]], str, str], ...] = (
    (approve, "queued", "awaiting_approval"),
    (cancel, "cancelled", "cancelled"),
    (reprioritise, "awaiting_approval", "awaiting_approval"),
)


async def open_verb_on_a_waiter_holds_up_no_end(connect: Connect) -> None:
    user, operator = await connect(), await impatient(connect)
    worker = await register(operator)
    for verb, after_commit, after_rollback in VERBS:
        for commits in (True, False):
            parent, other = [await enqueue(operator) for _ in range(2)]
            waiter = await enqueue(operator, after=[parent], needs_approval=True)
            attempts = await claim(operator, worker, limit=2)
            await verify_until_done(operator)
            with suppress(RolledBackError):
                async with user.transaction():
                    await verb(user, waiter)
                    assert await finish_many(operator, attempts) == []
                    assert await status(operator, parent) == await status(operator, other) == "succeeded"
                    for _ in range(2):
                        assert await maintained(operator) == "[]"
                    if not commits:
                        raise RolledBackError
            await verify_until_done(operator)
            expected = after_commit if commits else after_rollback
            if expected == "cancelled" and not commits:
                await cancel(operator, waiter)
            assert await status(operator, waiter) == expected
            if expected == "awaiting_approval":
                await approve(operator, waiter)
                assert await status(operator, waiter) == "queued", "its dependencies are met"
            assert await count(operator, "dependency") == 0
            for attempt in await claim(operator, worker, limit=9):
                assert await finish(operator, attempt) == "accepted"


async def one_open_transaction_after_another_loses_no_waiter(connect: Connect) -> None:
    """The resolver must not take its last look at a waiter while somebody holds it."""
    one, two, operator = await connect(), await connect(), await impatient(connect)
    worker = await register(operator)
    parent = await enqueue(operator)
    waiter = await enqueue(operator, after=[parent])
    [attempt] = await claim(operator, worker)
    await verify_until_done(operator)
    first, second = one.transaction(), two.transaction()
    await first.start()
    await reprioritise(one, waiter)
    assert await finish(operator, attempt) == "accepted"
    await maintained(operator)
    await first.rollback()
    await second.start()
    await reprioritise(two, waiter)
    for _ in range(4):
        await maintained(operator)
    await second.rollback()
    await verify_until_done(operator)
    assert await status(operator, waiter) == "queued"


async def open_cancel_of_one_attempt_leaves_the_others(connect: Connect) -> None:
    user, operator = await connect(), await impatient(connect)
    worker = await register(operator)
    jobs = [await enqueue(operator) for _ in range(4)]
    attempts = await claim(operator, worker, limit=4)
    async with user.transaction():
        await cancel(user, jobs[1])
        given = [a.job_id for a in attempts], [a.attempt_id for a in attempts]
        in_use = await operator.fetch("select attempt_id from fenceline.attempts_in_use($1, $2)", *given)
        assert [row["attempt_id"] for row in in_use] == [attempts[1].attempt_id]
        assert await operator.fetch("select * from fenceline.start_attempts($1, $2)", *given) == []
        assert await finish_many(operator, [attempts[0], *attempts[2:]]) == []
    assert await operator.fetch("select * from fenceline.attempts_in_use($1, $2)", *given) == []
    assert await finish_many(operator, [attempts[1]]) == []
    assert await count(operator, "history", "final") == 4
    assert await count(operator, "history", "started_at is not null") == 3


async def open_cancel_does_not_hold_up_the_sweep(connect: Connect) -> None:
    user, operator = await connect(), await impatient(connect)
    worker = await register(operator)
    jobs = [await enqueue(operator) for _ in range(3)]
    attempts = await claim(operator, worker, limit=3)
    await end_lease(operator, worker)
    with suppress(RolledBackError):
        async with user.transaction():
            await cancel(user, jobs[1])
            assert await operator.fetchval("select fenceline.sweep()") == 2
            assert await maintained(operator) == "[]"
            raise RolledBackError
    assert await operator.fetchval("select fenceline.sweep()") == 1
    assert [await status(operator, job) for job in jobs] == ["queued"] * 3
    assert await count(operator, "worker", "stopped_at is null") == 0
    assert await finish(operator, attempts[1]) == "stale"


async def frozen_claim_does_not_hold_up_the_sweep(connect: Connect) -> None:
    """Its session holds the worker's row: what the worker held before is reclaimed all the same, and what the claim
    brings when it has been committed.
    """
    frozen, operator = await connect(), await impatient(connect)
    worker, other = await register(operator), await register(operator)
    before, during = [await enqueue(operator) for _ in range(2)]
    first = await claim_one(operator, worker)
    assert first.job_id == before
    async with frozen.transaction():
        second = await claim_one(frozen, worker)
        assert second.job_id == during
        await end_lease(operator, worker)
        assert await maintained(operator) == "[]"
        assert await status(operator, before) == "queued"
        assert await finish(operator, first) == "stale"
        assert [a.job_id for a in await claim(operator, other, limit=9)] == [before]
    assert await status(operator, during) == "claimed"
    assert await maintained(operator) == "[]"
    assert await status(operator, during) == "queued"
    assert await finish(operator, second) == "stale"
    assert await count(operator, "worker", f"id = {worker} and stopped_at is not null") == 1


async def open_change_does_not_hold_up_expiry(connect: Connect) -> None:
    user, operator = await connect(), await impatient(connect)
    expired = "2020-01-01T00:00:00Z"
    jobs = [await enqueue(operator, expires_at="2999-01-01T00:00:00Z") for _ in range(3)]
    await operator.execute("update fenceline.deadline set expires_at = $1::text::timestamptz", expired)
    with suppress(RolledBackError):
        async with user.transaction():
            await reprioritise(user, jobs[1])
            assert await maintained(operator) == "[]"
            assert [await status(operator, job) for job in jobs] == ["cancelled", "queued", "cancelled"]
            raise RolledBackError
    await maintained(operator)
    assert await status(operator, jobs[1]) == "cancelled"


async def held_jobs_do_not_keep_others_from_expiring(connect: Connect) -> None:
    """As many as one look takes are held: those behind them have their turn."""
    user, operator = await connect(), await impatient(connect)
    jobs = [await enqueue(operator, expires_at="2999-01-01T00:00:00Z") for _ in range(3)]
    for day, job in enumerate(jobs, start=1):
        due = datetime(2020, 1, day, tzinfo=UTC)
        await operator.execute("update fenceline.deadline set expires_at = $1 where job_id = $2", due, job)
    with suppress(RolledBackError):
        async with user.transaction():
            for job in jobs[:2]:
                await reprioritise(user, job)
            for _ in range(2):
                await operator.execute("select fenceline.expire_jobs(2)")
            assert [await status(operator, job) for job in jobs] == ["queued", "queued", "cancelled"]
            raise RolledBackError
    await operator.execute("select fenceline.expire_jobs(2)")
    assert [await status(operator, job) for job in jobs] == ["cancelled"] * 3
    message = "select distinct error ->> 'message' from fenceline.history where final"
    assert "2999-01-01" in await operator.fetchval(message), "what was said, whenever it was looked at"


async def uncommitted_end_does_not_hold_up_maintenance(connect: Connect) -> None:
    """A transaction of a handler's that has written the end of its job and is cut off before its commit."""
    handler, operator = await connect(), await impatient(connect)
    worker, other = await register(operator), await register(operator)
    parents = [await enqueue(operator) for _ in range(2)]
    waiter = await enqueue(operator, after=parents)
    mine = await claim_one(operator, worker)
    theirs = await claim_one(operator, other)
    with suppress(RolledBackError):
        async with handler.transaction():
            assert await finish(handler, mine) == "accepted"
            await end_lease(operator, worker)
            await end_lease(operator, other)
            assert await maintained(operator) == "[]"
            assert await status(operator, theirs.job_id) == "queued"
            again = await claim_one(operator, await register(operator))
            assert again.job_id == theirs.job_id
            assert await finish(operator, again) == "accepted"
            raise RolledBackError
    await maintained(operator)
    assert await status(operator, mine.job_id) == "queued"
    last = await claim_one(operator, await register(operator))
    assert await finish(operator, last) == "accepted"
    await verify_until_done(operator)
    assert await status(operator, waiter) == "queued"


async def one_part_that_is_held_up_leaves_the_others(connect: Connect) -> None:
    user, operator = await many(connect, 2)
    parked = await enqueue(operator, run_at="2999-01-01T00:00:00Z")
    await operator.execute("update fenceline.timer set run_at = now() - interval '1 second'")
    async with user.transaction():
        await user.execute("lock table fenceline.deadline in access exclusive mode")
        assert await maintained(operator) == '["expire_jobs"]'
        assert await status(operator, parked) == "queued"
    assert await maintained(operator) == "[]"


async def change_lane(connection: Connection, name: str, *kinds: str) -> None:
    changes = json.dumps({"slots": 3, **({"kinds": kinds} if kinds else {})})
    await connection.execute("select fenceline.set_lane($1, $2)", name, changes)


async def open_change_of_the_lane_of_webhooks_holds_up_no_end(connect: Connect) -> None:
    user, operator, worker = *await many(connect, 2), await impatient(connect)
    worker_id = await register(operator)
    await operator.execute("""
        insert into fenceline.hook (tenant, url, secret, statuses, created_at)
        values ('default', 'https://example.com', 's', '{succeeded}', now())""")
    await change_lane(operator, "webhooks")
    job = await enqueue(operator)
    attempt = await claim_one(operator, worker_id)
    async with user.transaction():
        await change_lane(user, "webhooks")
        assert await finish(worker, attempt) == "accepted"
    assert await status(operator, job) == "succeeded"
    assert await count(operator, "ready", "kind = 'fenceline.webhook'") == 1


async def open_change_of_a_lane_holds_up_no_start_of_a_worker(connect: Connect) -> None:
    user, operator, worker = *await many(connect, 2), await impatient(connect)
    declare = "select fenceline.declare_kinds($1)"
    says = """{"work": {"lane": "night", "priority": 3, "retry": {"base": 1}, "retention": {"failed": 60}}}"""
    await operator.execute(declare, says)
    async with user.transaction():
        await change_lane(user, "night", "work")
        await worker.execute(declare, says)
    await worker.execute(declare, says.replace("3", "4"))
    assert await count(operator, "kind", "lane = 'night' and default_lane = 'night' and priority = 4") == 1


OPEN_SCENARIOS = (
    open_change_of_the_lane_of_webhooks_holds_up_no_end,
    open_change_of_a_lane_holds_up_no_start_of_a_worker,
    open_verb_on_a_waiter_holds_up_no_end,
    one_open_transaction_after_another_loses_no_waiter,
    open_cancel_of_one_attempt_leaves_the_others,
    open_cancel_does_not_hold_up_the_sweep,
    frozen_claim_does_not_hold_up_the_sweep,
    open_change_does_not_hold_up_expiry,
    held_jobs_do_not_keep_others_from_expiring,
    uncommitted_end_does_not_hold_up_maintenance,
    one_part_that_is_held_up_leaves_the_others,
)
