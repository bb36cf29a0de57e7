"""Jobs parked behind one key leave the jobs of another key alone.

A round runs jobs of a key of their own beside the parked ones of a key whose holder does not end; and the same in
another database of the same server, where nothing is parked.
"""

import json
import time
from statistics import median

import asyncpg

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.database import fresh_database
from benchmarks.measure import Result, Size

PER_ROUND = 200
TARGET = 0.90
ENQUEUE_SQL = "select from fenceline.enqueue_many('noop', $1::json[], $2)"


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    parked = 2_000 if size.quick else 100_000
    async with fresh_database(await dsn_of(connection)) as empty:
        await park(connection, parked)
        sides = [(c, await c.fetchval(jobs.WORKER_SQL)) for c in (connection, empty)]
        for one in sides:
            await run(*one)
        results = []
        for key_limit in (1, 50):
            seconds: tuple[list[float], list[float]] = ([], [])
            for number in range(size.rounds(40)):
                for side in (0, 1) if number % 2 else (1, 0):
                    seconds[side].append(await run(*sides[side], key_limit))
            beside, alone = seconds
            results.append(
                Result(
                    measurement=f"jobs of a key (limit {key_limit}) beside {parked:,} parked behind another / alone",
                    unit="jobs/s",
                    ours=PER_ROUND / median(beside),
                    bare=PER_ROUND / median(alone),
                    ratio=median(a / b for b, a in zip(beside, alone, strict=True)),
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


async def run(connection: asyncpg.Connection, worker_id: int, key_limit: int = 1) -> float:
    """Seconds for the jobs of another key, each claim asking for many and getting what the key admits."""
    options = {"key": "other", "key_limit": key_limit}
    await connection.execute(ENQUEUE_SQL, ["{}"] * PER_ROUND, json.dumps(options))
    started = time.perf_counter()
    done = 0
    while done < PER_ROUND:
        rows = await connection.fetch(jobs.CLAIM_SQL, worker_id, 50)
        assert 0 < len(rows) <= key_limit
        await connection.fetch(jobs.FINISH_SQL, [row[0] for row in rows], [row[1] for row in rows])
        done += len(rows)
    return time.perf_counter() - started
