"""Claim and finish in batches of 500 on one connection, no handler: our functions beside bare statements."""

import asyncpg

from benchmarks import bare, jobs
from benchmarks.measure import Result, Size, Work, alternate

BATCHES = 4  # per round and side
TARGET = 0.75


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    rounds = size.rounds(40)
    per_round = BATCHES * jobs.BATCH
    args = jobs.args_of(100)
    # One round more than is measured: it warms plans and caches.
    for _ in range(rounds + 1):
        await jobs.enqueue(connection, per_round, args)
        await connection.execute(bare.ENQUEUE_SQL, [args] * per_round)
    await connection.execute("vacuum analyze")
    worker_id = await connection.fetchval(jobs.WORKER_SQL)

    async def drain_bare(count: int) -> None:
        for _ in range(count // jobs.BATCH):
            rows = await connection.fetch(bare.CLAIM_SQL, jobs.BATCH)
            assert len(rows) == jobs.BATCH
            await connection.execute(bare.FINISH_SQL, [row[0] for row in rows], [row[1] for row in rows])

    async def prepare_ours() -> Work:
        return lambda: jobs.drain(connection, worker_id, per_round)

    async def prepare_bare() -> Work:
        return lambda: drain_bare(per_round)

    await jobs.drain(connection, worker_id, per_round)
    await drain_bare(per_round)
    await connection.execute("checkpoint")
    ours, theirs, ratio = await alternate(prepare_ours, prepare_bare, rounds=rounds, jobs=per_round)
    finished = await connection.fetchval("select count(*) from fenceline.history where final")
    assert finished == (rounds + 1) * per_round
    return [
        Result(
            measurement="claim + finish, batches of 500, one connection",
            unit="jobs/s",
            ours=ours,
            bare=theirs,
            ratio=ratio,
            target=TARGET,
        )
    ]
