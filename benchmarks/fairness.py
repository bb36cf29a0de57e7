"""What fairness costs: the same jobs of many tenants drained from a fair lane and from a plain one.

And what it is for: 50 jobs of one tenant behind 50,000 of another are done in the first hundredth of the time.
"""

import json
import time
from statistics import median

import asyncpg

from benchmarks import jobs
from benchmarks.measure import Result, Size, interleave

TENANTS = (2, 20, 200)
AT_A_TIME = 20
VACUUM_AFTER = 10
TARGET = 0.85
FIRST_PART = 0.01
CLAIM_SQL = "select * from fenceline.claim_jobs($1, $2, $3)"
ENQUEUE_SQL = "select from fenceline.enqueue_many('noop', $1::json[], $2)"


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    await connection.execute("select fenceline.set_lane('fair', '{\"fair\": true}', null, true)")
    worker_id = await connection.fetchval(jobs.WORKER_SQL)
    results = [await measure_cost(connection, worker_id, tenants, size) for tenants in TENANTS]
    return [*results, await measure_first_part(connection, worker_id, size)]


async def enqueue(connection: asyncpg.Connection, lane: str, tenant: str, count: int) -> None:
    await connection.execute(ENQUEUE_SQL, [jobs.args_of(100)] * count, json.dumps({"lane": lane, "tenant": tenant}))


async def drain_batch(connection: asyncpg.Connection, worker_id: int, lane: str) -> None:
    rows = await connection.fetch(CLAIM_SQL, worker_id, lane, jobs.BATCH)
    assert len(rows) == jobs.BATCH
    await connection.fetch(jobs.FINISH_SQL, [row[0] for row in rows], [row[1] for row in rows])


async def measure_cost(connection: asyncpg.Connection, worker_id: int, tenants: int, size: Size) -> Result:
    batches = size.rounds(100)
    # Tenants enqueue by turns, some jobs at a time.
    for _ in range(batches * jobs.BATCH // (tenants * AT_A_TIME) + 1):
        for number in range(tenants):
            for lane in ("fair", "default"):
                await enqueue(connection, lane, f"tenant-{number:04}", AT_A_TIME)
    steps: list[tuple[float, float]] = []
    while len(steps) * VACUUM_AFTER < batches:
        # As autovacuum would, which is off here: dead entries are a cost of both sides, and not what is measured.
        await connection.execute("vacuum analyze")
        steps.append(
            await interleave(
                lambda: drain_batch(connection, worker_id, "fair"),
                lambda: drain_batch(connection, worker_id, "default"),
                steps=min(VACUUM_AFTER, batches),
            )
        )
    fair, plain = median(fair for fair, _ in steps), median(plain for _, plain in steps)
    for lane in ("fair", "default"):  # what is left over
        while rows := await connection.fetch(CLAIM_SQL, worker_id, lane, jobs.BATCH):
            await connection.fetch(jobs.FINISH_SQL, [row[0] for row in rows], [row[1] for row in rows])
    return Result(
        measurement=f"drain of a fair lane with {tenants} tenants / of a plain lane",
        unit="jobs/s",
        ours=jobs.BATCH / fair,
        bare=jobs.BATCH / plain,
        ratio=plain / fair,
        target=TARGET,
    )


async def measure_first_part(connection: asyncpg.Connection, worker_id: int, size: Size) -> Result:
    """Claimed by 50, as a worker with some places does: when is the last of the small tenant's jobs over?"""
    large, small, batch = (5_000 if size.quick else 50_000), 50, 50
    for _ in range(large // 5_000):
        await enqueue(connection, "fair", "large", 5_000)
    await enqueue(connection, "fair", "small", small)
    await connection.execute("vacuum analyze")
    started = time.perf_counter()
    left, small_done = large + small, 0.0
    while left:
        rows = await connection.fetch(CLAIM_SQL, worker_id, "fair", batch)
        assert rows
        await connection.fetch(jobs.FINISH_SQL, [row[0] for row in rows], [row[1] for row in rows])
        left -= len(rows)
        if any(row["tenant"] == "small" for row in rows):
            small_done = time.perf_counter() - started
    whole = time.perf_counter() - started
    return Result(
        measurement=f"{small} jobs beside {large:,} of another tenant: done after this part of the whole time",
        unit="s",
        ours=small_done,
        bare=whole,
        ratio=small_done / whole,
        target=FIRST_PART * (10 if size.quick else 1),
        bound="at most",
    )
