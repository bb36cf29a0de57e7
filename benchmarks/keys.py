"""Jobs parked behind one key leave the jobs of another key alone.

In turn, jobs of a key of their own run beside the parked ones of a key whose holder does not end, and in another
database of the same server where nothing is parked.
"""

import json

import asyncpg

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.database import fresh_database
from benchmarks.measure import Result, Size, interleave

TARGET = 0.90
ENQUEUE_SQL = "select from fenceline.enqueue_many('noop', $1::json[], $2)"


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    parked = 2_000 if size.quick else 100_000
    async with fresh_database(await dsn_of(connection)) as empty:
        await park(connection, parked)
        sides = [(c, await c.fetchval(jobs.WORKER_SQL)) for c in (connection, empty)]
        results = []
        for key_limit in (1, 50):
            steps = size.rounds(400 if key_limit == 1 else 100)
            for side in sides:
                await enqueue(side[0], steps * key_limit, key_limit)
            beside, alone = await interleave(
                lambda limit=key_limit: run(*sides[0], limit),
                lambda limit=key_limit: run(*sides[1], limit),
                steps=steps,
            )
            results.append(
                Result(
                    measurement=f"jobs of a key (limit {key_limit}) beside {parked:,} parked behind another / alone",
                    unit="jobs/s",
                    ours=key_limit / beside,
                    bare=key_limit / alone,
                    ratio=alone / beside,
                    target=TARGET,
                )
            )
    assert await connection.fetchval("select count(*) from fenceline.held where key = 'busy'") == parked
    return results


async def park(connection: asyncpg.Connection, count: int) -> None:
    """One job holds the key and does not end; the others wait."""
    worker_id = await connection.fetchval(jobs.WORKER_SQL)
    await connection.execute(ENQUEUE_SQL, ["{}"], json.dumps({"key": "busy"}))
    assert len(await connection.fetch(jobs.CLAIM_SQL, worker_id, 1)) == 1
    for _ in range(count // 2_000):
        await connection.execute(ENQUEUE_SQL, ["{}"] * 2_000, json.dumps({"key": "busy"}))
    await connection.execute("vacuum analyze")
    # The worker of a real fleet has looked at every request to admit one by now.
    while await connection.fetchval("select exists (select 1 from fenceline.key_check)"):
        await connection.execute("select fenceline.maintain(0)")
    await connection.execute("vacuum analyze")


async def enqueue(connection: asyncpg.Connection, count: int, key_limit: int) -> None:
    options = {"key": f"other {key_limit}", "key_limit": key_limit}
    await connection.execute(ENQUEUE_SQL, ["{}"] * count, json.dumps(options))


async def run(connection: asyncpg.Connection, worker_id: int, key_limit: int) -> None:
    """A claim that asks for many and gets what the key admits, and its finish."""
    rows = await connection.fetch(jobs.CLAIM_SQL, worker_id, 100)
    assert len(rows) == key_limit
    await connection.fetch(jobs.FINISH_SQL, [row[0] for row in rows], [row[1] for row in rows])
