"""A worker drains no-op async jobs: one process, history kept, fenced; beside the same statements without handlers.

The clock runs from the first handler's call to the moment nothing is left, so the endings count and the start of a
process does not. The worker claims on one connection while it finishes on another, so it can come close to the bare
loop, which does one after the other on a single connection, although it runs a handler for each job.
"""

import asyncio
import contextlib
import time
from statistics import median

import asyncpg

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from fenceline import Fenceline

JOBS = 20_000
TARGET = 0.70
LEFT_SQL = "select exists (select 1 from fenceline.ready) or exists (select 1 from fenceline.running)"


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    dsn = await dsn_of(connection)
    ours: list[float] = []
    bare: list[float] = []
    for number in range(size.rounds(10)):
        for seconds, drain in (
            ((ours, drain_by_worker), (bare, drain_bare))
            if number % 2
            else ((bare, drain_bare), (ours, drain_by_worker))
        ):
            await jobs.enqueue(connection, JOBS, jobs.args_of(100))
            await connection.execute("vacuum analyze")
            await connection.execute("checkpoint")
            seconds.append(await drain(connection, dsn))
    return [
        Result(
            measurement="worker drains no-op jobs / the same statements without handlers",
            unit="jobs/s",
            ours=JOBS / median(ours),
            bare=JOBS / median(bare),
            ratio=median(b / o for o, b in zip(ours, bare, strict=True)),
            target=TARGET,
        )
    ]


async def drain_bare(connection: asyncpg.Connection, _dsn: str) -> float:
    worker_id = await connection.fetchval(jobs.WORKER_SQL)
    started = time.perf_counter()
    await jobs.drain(connection, worker_id, JOBS)
    return time.perf_counter() - started


async def drain_by_worker(connection: asyncpg.Connection, dsn: str) -> float:
    app = Fenceline(dsn)
    called: list[float] = []
    count = 0

    @app.job()
    async def noop(path: str, number: int) -> None:  # noqa: ARG001 - the args of the jobs
        nonlocal count
        count += 1
        if not called:
            called.append(time.perf_counter())

    working = asyncio.create_task(app.run_worker(grace_seconds=0))
    while count < JOBS or await connection.fetchval(LEFT_SQL):  # noqa: ASYNC110 - the database has no event for it
        await asyncio.sleep(0.005)
    ended = time.perf_counter()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    await app.close()
    assert count == JOBS
    return ended - called[0]
