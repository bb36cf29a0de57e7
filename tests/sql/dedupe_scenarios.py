"""Dedupe keys and open transactions: who was answered with a job can rely on a run that sees what he wrote."""

import asyncio
from functools import partial

from tests.sql.sessions import (
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
    refusal,
    register,
    set_lane,
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
    # Two at once: one job all the same.
    await claim_one(operator, worker)
    (third, made), (found, made_too), waited = await overlap(
        connect, partial(enqueue_or_find, dedupe_key="k"), partial(enqueue_or_find, dedupe_key="k")
    )
    assert (third, made, made_too, waited) == (found, True, False, True)


async def asked_job_does_not_start_before_the_commit(connect: Connect) -> None:
    """In any lane, in whichever gate the answer found it; jobs behind it go on."""
    user, operator = await many(connect, 2)
    await operator.execute("set lock_timeout = '2s'")
    worker = await register(operator)
    for fair in (False, True):
        await set_lane(operator, "default", fair=fair)
        for ask in ("commit", "rollback"):
            asked = await enqueue(operator, dedupe_key="k", priority=9)
            transaction = user.transaction()
            await transaction.start()
            assert await enqueue_or_find(user, dedupe_key="k") == (asked, False)
            behind = [await enqueue(operator) for _ in range(2)]
            for job in behind:
                assert (await claim_one(operator, worker)).job_id == job
            assert await claim(operator, worker) == []
            await (transaction.commit() if ask == "commit" else transaction.rollback())
            attempt = await claim_one(operator, worker)
            assert attempt.job_id == asked
            await finish(operator, attempt)


async def asked_job_waits_in_every_gate(connect: Connect) -> None:
    user, operator = await many(connect, 2)
    await operator.execute("set lock_timeout = '2s'")
    worker = await register(operator)
    before = await enqueue(operator)
    jobs = {
        "timer": await enqueue(operator, dedupe_key="timer", run_at="2020-01-01T00:00:00Z"),
        "later": await enqueue(operator, dedupe_key="later", run_at="2099-01-01T00:00:00Z"),
        "approval": await enqueue(operator, dedupe_key="approval", needs_approval=True),
        "dependencies": await enqueue(operator, dedupe_key="dependencies", after=[before]),
        "key": await enqueue(operator, dedupe_key="key", key="serial"),
        "cancelled": await enqueue(operator, dedupe_key="cancelled"),
        "expired": await enqueue(operator, dedupe_key="expired", expires_at="2099-01-01T00:00:00Z"),
    }
    async with user.transaction():
        for key, job in jobs.items():
            assert await enqueue_or_find(user, dedupe_key=key) == (job, False)
        # Nothing of this waits for the open transaction.
        await operator.execute("update fenceline.timer set run_at = now() where job_id = $1", jobs["later"])
        await operator.execute("update fenceline.deadline set expires_at = now()")
        await operator.execute("select fenceline.approve_job($1)", jobs["approval"])
        await operator.execute("select fenceline.cancel_job($1)", jobs["cancelled"])
        await operator.execute("select fenceline.reprioritise_job($1, 3)", jobs["timer"])
        attempt = await claim_one(operator, worker, limit=9)
        assert attempt.job_id == before
        await finish(operator, attempt)
        await maintain(operator)
        assert await claim(operator, worker, limit=9) == []
        ended = [jobs["cancelled"], jobs["expired"]]
        assert [await status(operator, job) for job in ended] == ["cancelled"] * 2
        assert await count(operator, "ready") == 5
        assert await count(operator, "lost_locks()") == 0
    # The keys of the two that ended could not be given back; nobody is told them all the same.
    assert (await enqueue_or_find(operator, dedupe_key="expired"))[1]
    assert len(await claim(operator, worker, limit=9)) == 6
    await maintain(operator)
    assert await count(operator, "dedupe_check") == 0
    assert await count(operator, "dedupe", "key = 'cancelled'") == 0


async def workers_are_woken_when_an_asked_job_may_start(connect: Connect) -> None:
    user, operator, listener = await many(connect, 3)
    worker = await register(operator)
    asked = await enqueue(operator, dedupe_key="k")
    heard: asyncio.Queue[object] = asyncio.Queue()
    await listener.add_listener("fenceline_ready", lambda *said: heard.put_nowait(said[-1]))
    async with user.transaction():
        await enqueue(user, dedupe_key="k")
        text = "select count(*) from fenceline.claim_jobs($1, p_wait_seconds => 60)"
        assert await operator.fetchval(text, worker) == 0
    assert heard.empty()
    await maintain(operator)
    assert await heard.get() == "default"
    assert (await claim_one(operator, worker)).job_id == asked


async def dedupe_key_comes_back_with_its_job(connect: Connect) -> None:
    """While a job waits for its retry it has its key; a rival that is open meanwhile holds up no finish."""
    user, operator = await many(connect, 2)
    await operator.execute("set lock_timeout = '2s'")
    worker = await register(operator)
    first = await enqueue(operator, dedupe_key="k")
    for outcome in ("failed", "snoozed", "released"):
        attempt = await claim_one(operator, worker)
        transaction = user.transaction()
        await transaction.start()
        rival, made = await enqueue_or_find(user, dedupe_key="k")
        assert made
        assert rival != first
        assert await finish(operator, attempt, outcome) == "accepted"
        await transaction.rollback()
        await maintain(operator)
        assert await enqueue_or_find(operator, dedupe_key="k") == (first, False)
    # Somebody else had it for a while, and has ended.
    attempt = await claim_one(operator, worker)
    second = await enqueue(operator, dedupe_key="k")
    await finish(operator, await claim_one(operator, worker))
    assert await status(operator, second) == "succeeded"
    await finish(operator, attempt, "released")
    assert await enqueue_or_find(operator, dedupe_key="k") == (first, False)
    # And where both wait, the newer one is found.
    attempt = await claim_one(operator, worker)
    third = await enqueue(operator, dedupe_key="k")
    await finish(operator, attempt, "released")
    assert await enqueue_or_find(operator, dedupe_key="k") == (third, False)
    for _ in range(2):
        await finish(operator, await claim_one(operator, worker))
    assert await count(operator, "dedupe") == 0


async def dedupe_key_is_held_until_the_end(connect: Connect) -> None:
    user, operator = await many(connect, 2)
    await operator.execute("set lock_timeout = '2s'")
    worker = await register(operator)
    options = {"dedupe_key": "k", "dedupe_until": "finished"}
    for outcome in ("succeeded", "failed_for_good"):
        job = await enqueue(operator, **options)
        attempt = await claim_one(operator, worker)
        assert await enqueue_or_find(operator, dedupe_key="k") == (job, False)
        async with user.transaction():
            assert await enqueue_or_find(user, **options) == (job, False)
            assert await finish(operator, attempt, outcome) == "accepted"
        assert (await enqueue_or_find(operator, dedupe_key="k"))[1]
        await finish(operator, await claim_one(operator, worker))
        await maintain(operator)
        assert await count(operator, "dedupe") == 0


async def old_snapshot_is_not_answered_with_a_claimed_job(connect: Connect) -> None:
    user, operator = await many(connect, 2)
    worker = await register(operator)
    job = await enqueue(operator, dedupe_key="k")
    async with user.transaction(isolation="repeatable_read"):
        assert await status(user, job) == "queued"  # this is the snapshot
        assert await enqueue_or_find(user, dedupe_key="k") == (job, False)
        assert await claim(operator, worker) == []
    transaction = user.transaction(isolation="repeatable_read")
    await transaction.start()
    assert await status(user, job) == "queued"
    await claim_one(operator, worker)
    assert await refusal(_ask(user)) == "40001"
    await transaction.rollback()
    assert (await enqueue_or_find(user, dedupe_key="k"))[1]


async def _ask(user: Connection) -> None:
    await enqueue(user, dedupe_key="k")


DEDUPE_SCENARIOS = (
    dedupe_key_makes_one_job,
    dedupe_key_is_free_after_a_rollback,
    dedupe_key_is_free_after_a_claim,
    asked_job_does_not_start_before_the_commit,
    asked_job_waits_in_every_gate,
    workers_are_woken_when_an_asked_job_may_start,
    dedupe_key_comes_back_with_its_job,
    dedupe_key_is_held_until_the_end,
    old_snapshot_is_not_answered_with_a_claimed_job,
)
