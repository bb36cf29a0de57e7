"""What 1,000 clients that wait for results ask of the database while nothing changes, and how soon they hear."""

import asyncio
import time
from statistics import median

import asyncpg

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from fenceline import Fenceline

WAITERS = 1_000
STATEMENTS_TARGET = 5
# Counted by the server. Each statement of the client is a transaction; the connection that asks has its own.
TRANSACTIONS_SQL = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"


async def transactions(connection: asyncpg.Connection) -> int:
    # The counters of a session reach the shared ones when it is next active, at most once a second.
    await connection.execute("select pg_stat_clear_snapshot()")
    return int(await connection.fetchval(TRANSACTIONS_SQL))


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    seconds = 5 if size.quick else 20
    worker_id = await connection.fetchval(jobs.WORKER_SQL)
    async with Fenceline(await dsn_of(connection)) as app:

        @app.job()
        async def noop(path: str) -> None: ...

        made = await noop.enqueue_many({"path": str(n)} for n in range(WAITERS))
        waiters = [asyncio.create_task(job.result()) for job in made]
        await asyncio.sleep(3)
        before, started = await transactions(connection), time.perf_counter()
        await asyncio.sleep(seconds)
        after, ended = await transactions(connection), time.perf_counter()
        assert not any(waiter.done() for waiter in waiters)

        delays: list[float] = []
        started_at = time.perf_counter()
        for waiter in waiters:
            waiter.add_done_callback(lambda _waiter: delays.append(time.perf_counter() - started_at))
        await jobs.drain(connection, worker_id, WAITERS)
        await asyncio.gather(*waiters)
    return [
        Result(
            measurement="statements while 1,000 wait and nothing changes",
            unit="per second",
            # The two that counted are among them.
            ours=(after - before - 2) / (ended - started),
            target=STATEMENTS_TARGET,
            bound="at most",
            note=f"all {WAITERS:,} claimed, finished and heard of within {median(delays) * 1000:,.0f} ms (median)",
        )
    ]
