"""Pruning a day whose jobs have all expired, while others enqueue: WAL, and how long anybody waits.

The day is filled directly: what it costs to make old jobs is not the question. The WAL is that of the statement itself
(`explain (analyze, wal)`). Row by row is what `prune` does where a day cannot be dropped, measured on a tenth.
"""

import asyncio
import json
import time

import asyncpg

from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size

FILL_SQL = """
insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args)
select fenceline.id_at($1) + n, 0, 3, 'noop', 'default', 'default', '{"path": "s3://bucket/some/file", "number": 12345}'
from generate_series(1, $2::bigint) n
"""
HISTORY_SQL = """
insert into fenceline.history (job_id, ended_at, token, claimed_at, worker_id, attempt_id, number, final, outcome)
select fenceline.id_at($1) + n, $1 + interval '1 second', 1, $1, 1, gen_random_uuid(), 1, true, 'succeeded'
from generate_series(1, $2::bigint) n
"""


async def fill_day(connection: asyncpg.Connection, days_ago: int, count: int) -> None:
    """A day's partitions with so many finished jobs."""
    clock = "create or replace function fenceline.clock() returns timestamptz language sql as $$ select {} $$"
    day = await connection.fetchval("select date_trunc('day', now(), 'UTC') - make_interval(days => $1)", days_ago)
    await connection.execute(clock.format(f"timestamptz '{day.isoformat()}'"))
    assert await connection.fetchval("select fenceline.create_partitions(0)") == 2
    await connection.execute(clock.format("clock_timestamp()"))
    await connection.execute(FILL_SQL, day, count)
    await connection.execute(HISTORY_SQL, day, count)


async def wal_of(connection: asyncpg.Connection, statement: str) -> int:
    text = await connection.fetchval(f"explain (analyze, wal, format json) {statement}")
    return int(json.loads(text)[0]["Plan"]["WAL Bytes"])


async def enqueue_until(done: asyncio.Event, connection: asyncpg.Connection) -> float:
    """Enqueue one job after the other; the longest time that one took, in seconds."""
    longest = 0.0
    while not done.is_set():
        started = time.perf_counter()
        await connection.fetch("select * from fenceline.enqueue('noop')")
        longest = max(longest, time.perf_counter() - started)
    return longest


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = 50_000 if size.quick else 1_000_000
    await connection.execute("set enable_seqscan = on; set enable_hashjoin = on; set enable_mergejoin = on")
    other = await asyncpg.connect(await dsn_of(connection))
    try:
        await fill_day(connection, 20, count)
        done = asyncio.Event()
        enqueuing = asyncio.create_task(enqueue_until(done, other))
        started = time.perf_counter()
        dropped_wal = await wal_of(connection, "select fenceline.prune()")
        seconds = time.perf_counter() - started
        done.set()
        longest = await enqueuing
    finally:
        await other.close()
    assert await connection.fetchval("select count(*) from fenceline.history") == 0
    few = count // 10
    await fill_day(connection, 20, few)
    rows_wal = await wal_of(connection, "select fenceline.forget_jobs(array(select id from fenceline.job where id < "
                            "fenceline.id_at(now() - interval '10 days')))")  # fmt: skip
    assert await connection.fetchval("select count(*) from fenceline.history") == 0
    return [
        Result(
            measurement=f"pruning {count:,} expired jobs: longest wait of an enqueue",
            unit="ms",
            ours=longest * 1000,
            target=1000,
            bound="at most",
            note=f"{seconds:.2f} s in all",
        ),
        Result(
            measurement="WAL of dropping a day, per cent of row by row",
            unit="%",
            ours=dropped_wal / (rows_wal * count / few) * 100,
            target=10,
            bound="at most",
            note=f"{dropped_wal:,} B for {count:,} jobs, {rows_wal / few:,.0f} B per job row by row",
        ),
    ]
