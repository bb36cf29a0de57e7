"""Claims that meet: other claims, limits, drains, and the end of their own worker."""

import asyncio

from tests.sql.sessions import (
    Attempt,
    Connect,
    Connection,
    claim,
    count,
    end_lease,
    enqueue,
    finish,
    many,
    overlap,
    refusal,
    register,
    set_lane,
    status,
    waits_or_ends,
)


async def two_claimers_never_get_the_same_job(connect: Connect) -> None:
    connections = await many(connect, 6)
    await connections[0].execute("select fenceline.enqueue_many('work', array_fill('{}'::json, array[300]))")

    async def claim_all(connection: Connection) -> list[Attempt]:
        worker, claimed = await register(connection), list[Attempt]()
        while batch := await claim(connection, worker, limit=7):
            claimed += batch
        return claimed

    shares = await asyncio.gather(*map(claim_all, connections))
    claimed = [attempt for share in shares for attempt in share]
    assert len({attempt.job_id for attempt in claimed}) == len(claimed) == 300
    assert len({attempt.attempt_id for attempt in claimed}) == 300


async def open_claim_does_not_hold_up_another(connect: Connect) -> None:
    operator = await connect()
    jobs = [await enqueue(operator) for _ in range(4)]
    workers = [await register(operator) for _ in range(2)]
    first, second, waited = await overlap(
        connect, lambda c: claim(c, workers[0], limit=2), lambda c: claim(c, workers[1], limit=2)
    )
    assert not waited
    assert [attempt.job_id for attempt in first + second] == jobs


async def rate_is_not_refilled_twice_while_claims_wait(connect: Connect) -> None:
    operator, first, second = await many(connect, 3)
    await set_lane(operator, "paced", rate_per_second=1, burst=10)
    workers = [await register(operator) for _ in range(2)]
    for _ in range(2):
        await enqueue(operator, lane="paced")
    async with first.transaction():
        await first.execute("select pg_advisory_xact_lock(1179926085, hashtext('paced'))")
        waiting = asyncio.create_task(claim(second, workers[1], lane="paced"))
        assert await waits_or_ends(operator, second, waiting)
        assert len(await claim(first, workers[0], lane="paced")) == 1
        charged = await first.fetchval("select refilled_at from fenceline.lane_state where lane = 'paced'")
    assert len(await waiting) == 1
    assert await operator.fetchval("select refilled_at from fenceline.lane_state where lane = 'paced'") > charged


async def a_claim_that_is_due_in_a_moment_is_waited_for(connect: Connect) -> None:
    operator = await connect()
    await set_lane(operator, "paced", rate_per_second=120, burst=1)
    worker = await register(operator)
    for _ in range(10):
        await enqueue(operator, lane="paced")
    # In one transaction: nothing but the server comes between the claims.
    async with operator.transaction():
        claimed = [len(await claim(operator, worker, lane="paced")) for _ in range(10)]
    assert claimed == [1] * 10


async def an_addressed_job_is_for_whom_it_is_meant(connect: Connect) -> None:
    """In every sort of claim: with and without lower bounds, in fair lanes, for a tenant, of suspects."""
    operator = await connect()
    await set_lane(operator, "fair", fair=True)
    other = await register(operator)
    bound = await operator.fetchval("select fenceline.register_worker('bound', p_tenant => 'default')")
    jobs = {lane: await enqueue(operator, lane=lane, runner="mine") for lane in ("default", "fair")}
    scans = "select count(*) from fenceline.claim_jobs($1, $2, 5, p_floor_priorities => $3, p_floor_seqs => $4)"
    for lane in jobs:
        for floors in (None, None), ([0], [0]), ([5], [0]), ([-5], [0]):
            for worker in (other, bound):
                for _ in range(2):  # the first may be the one that looks below the bounds
                    assert await operator.fetchval(scans, worker, lane, *floors) == 0
    mine = await operator.fetchval("select fenceline.register_worker('mine')")
    for lane, job in jobs.items():
        [attempt] = await claim(operator, mine, lane=lane)
        assert attempt.job_id == job
        await finish(operator, attempt, "released")
        assert await operator.fetchval(scans, other, lane, None, None) == 0, "what comes back is still addressed"
        assert [attempt.job_id for attempt in await claim(operator, mine, lane=lane)] == [job]
    await operator.execute("select fenceline.report_crash($1)", mine)
    alone = "select count(*) from fenceline.claim_jobs($1, $2, 5, p_alone => true)"
    for lane in jobs:
        assert await operator.fetchval(alone, other, lane) == 0


async def slots_hold_while_claims_overlap(connect: Connect) -> None:
    operator = await connect()
    await set_lane(operator, "narrow", slots=2)
    for _ in range(5):
        await enqueue(operator, lane="narrow")
    workers = [await register(operator) for _ in range(2)]
    await overlap(
        connect,
        lambda c: claim(c, workers[0], lane="narrow", limit=2),
        lambda c: claim(c, workers[1], lane="narrow", limit=2),
    )
    assert await count(operator, "running") == 2


async def slots_hold_for_16_claimers(connect: Connect) -> None:
    slots, jobs = 3, 96
    operator, observer = await many(connect, 2)
    await set_lane(operator, "narrow", slots=slots)
    for _ in range(jobs):
        await enqueue(operator, lane="narrow")
    connections = await many(connect, 16)
    start = asyncio.Barrier(len(connections))
    most = 0

    async def work(connection: Connection) -> None:
        worker = await register(connection)
        await start.wait()
        while await count(connection, "history", "final") < jobs:
            for attempt in await claim(connection, worker, lane="narrow", limit=2):
                assert await finish(connection, attempt) == "accepted"

    async def sample(workers: "asyncio.Future[list[None]]") -> None:
        nonlocal most
        while not workers.done():
            most = max(most, await count(observer, "running"))

    workers = asyncio.gather(*map(work, connections))
    await asyncio.gather(workers, sample(workers))
    assert 1 <= most <= slots
    assert await count(operator, "history", "final") == jobs


async def lowered_slots_start_nothing_above(connect: Connect) -> None:
    operator = await connect()
    await set_lane(operator, "wide")
    for _ in range(6):
        await enqueue(operator, lane="wide")
    worker = await register(operator)
    claimed, _, waited = await overlap(
        connect, lambda c: claim(c, worker, lane="wide", limit=2), lambda c: set_lane(c, "wide", slots=2)
    )
    assert len(claimed) == 2
    assert await claim(operator, worker, lane="wide", limit=2) == []
    assert waited, "the change waits for claims in flight, or it could not count them"

    await finish(operator, claimed[0])
    _, second, _ = await overlap(
        connect, lambda c: set_lane(c, "wide", slots=1), lambda c: claim(c, worker, lane="wide", limit=2)
    )
    assert second == []
    await set_lane(operator, "wide", slots=None)
    _, third, _ = await overlap(
        connect, lambda c: set_lane(c, "wide", slots=1), lambda c: claim(c, worker, lane="wide", limit=2)
    )
    assert third == []


async def drained_lane_claims_nothing(connect: Connect) -> None:
    operator = await connect()
    for _ in range(4):
        await enqueue(operator)
    worker = await register(operator)
    for slots in (None, 3):
        await set_lane(operator, "default", enabled=True, slots=slots)
        _, claimed, _ = await overlap(
            connect, lambda c: set_lane(c, "default", enabled=False), lambda c: claim(c, worker)
        )
        assert claimed == []
        await set_lane(operator, "default", enabled=True)
        claimed, _, waited = await overlap(
            connect, lambda c: claim(c, worker), lambda c: set_lane(c, "default", enabled=False)
        )
        assert len(claimed) == 1
        assert waited, "once the drain has returned, no claim is still under way"
        assert await claim(operator, worker) == []


async def stopped_worker_leaves_no_attempt(connect: Connect) -> None:
    operator = await connect()
    await enqueue(operator)

    async def stop(connection: Connection, worker: int) -> int:
        released = await connection.fetchval("select fenceline.stop_worker($1)", worker)
        assert isinstance(released, int)
        return released

    worker = await register(operator)
    claimed, released, waited = await overlap(connect, lambda c: claim(c, worker), lambda c: stop(c, worker))
    assert await count(operator, "running") == 0
    assert len(claimed) == released == 1
    assert waited
    assert await refusal(claim(operator, worker)) == "FL015"

    worker = await register(operator)
    _, answer, _ = await overlap(connect, lambda c: stop(c, worker), lambda c: claim(c, worker))
    assert answer == "FL015"
    assert await count(operator, "running") == 0


async def swept_worker_leaves_no_attempt(connect: Connect) -> None:
    operator = await connect()
    job = await enqueue(operator)

    async def end_and_sweep(connection: Connection, worker: int) -> int:
        await end_lease(connection, worker)
        swept = await connection.fetchval("select fenceline.sweep()")
        assert isinstance(swept, int)
        return swept

    worker = await register(operator)
    claimed, _, _ = await overlap(connect, lambda c: claim(c, worker), lambda c: end_and_sweep(c, worker))
    assert len(claimed) == 1
    await operator.execute("select fenceline.sweep()")
    assert await status(operator, job) == "queued"

    worker = await register(operator)
    _, answer, _ = await overlap(connect, lambda c: end_and_sweep(c, worker), lambda c: claim(c, worker))
    assert answer == "FL015"
    assert await count(operator, "running") == 0


CLAIM_SCENARIOS = (
    two_claimers_never_get_the_same_job,
    open_claim_does_not_hold_up_another,
    rate_is_not_refilled_twice_while_claims_wait,
    a_claim_that_is_due_in_a_moment_is_waited_for,
    an_addressed_job_is_for_whom_it_is_meant,
    slots_hold_while_claims_overlap,
    slots_hold_for_16_claimers,
    lowered_slots_start_nothing_above,
    drained_lane_claims_nothing,
    stopped_worker_leaves_no_attempt,
    swept_worker_leaves_no_attempt,
)
