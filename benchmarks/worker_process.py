"""A real `fenceline worker`: the memory of its child over many jobs, and how late jobs with a `run_at` start."""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from fenceline import Fenceline

CHUNK = 20_000
MEMORY_TARGET_MB = 80
LATENESS_TARGET_MS = 1000
LEFT_SQL = "select count(*) from (select 1 from fenceline.ready limit 40000) as queued"
WAITING_SQL = "select exists (select 1 from fenceline.timer) or exists (select 1 from fenceline.ready)"
LATENESS_SQL = """
select percentile_cont(array[0.5, 0.99]) within group (
  order by 1000 * extract(epoch from h.claimed_at - j.run_at)::float8)
from fenceline.history h join fenceline.job j on j.id = h.job_id where j.run_at is not null and h.final
"""


@asynccontextmanager
async def running_worker(dsn: str) -> AsyncIterator[int]:
    """A worker process; yields the pid of its one child."""
    command = [str(Path(sys.executable).parent / "fenceline"), "worker", "benchmarks.noop_app:app"]
    worker = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, "FENCELINE_DSN": dsn}, stderr=subprocess.DEVNULL
    )
    try:
        children: list[str] = []
        while not children:
            await asyncio.sleep(0.1)
            children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()  # noqa: ASYNC240 - /proc
        yield int(children[0])
    finally:
        worker.terminate()
        await worker.wait()


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no VmRSS of {pid}")


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    dsn = await dsn_of(connection)
    async with running_worker(dsn) as child:
        return [await measure_memory(connection, child, size), await measure_lateness(connection, dsn, size)]


async def measure_memory(connection: asyncpg.Connection, child: int, size: Size) -> Result:
    total = 100_000 if size.quick else 1_000_000
    sizes: list[float] = []
    for done in range(0, total, CHUNK):
        await jobs.enqueue(connection, CHUNK, jobs.args_of(100))
        while await connection.fetchval(LEFT_SQL) > CHUNK:  # noqa: ASYNC110 - as below
            await asyncio.sleep(0.02)
        if done >= total // 5:
            sizes.append(resident_mb(child))
    while await connection.fetchval(LEFT_SQL):  # noqa: ASYNC110 - the database has no event for it
        await asyncio.sleep(0.02)
    return Result(
        measurement=f"memory of a child after {total:,} jobs",
        unit="MB",
        ours=resident_mb(child),
        target=MEMORY_TARGET_MB,
        bound="at most",
        note=f"{sizes[0]:.1f} MB after the first fifth, {resident_mb(child):.1f} MB at the end",
    )


async def measure_lateness(connection: asyncpg.Connection, dsn: str, size: Size) -> Result:
    start = datetime.now(UTC) + timedelta(seconds=1)
    async with Fenceline(dsn) as app:
        for _ in range(50 if size.quick else 300):
            await app.enqueue(
                "noop", {"path": "", "number": 1}, run_at=start + timedelta(seconds=random.uniform(0, 10))
            )
        while await connection.fetchval(WAITING_SQL):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.1)
    await asyncio.sleep(0.5)
    median, p99 = await connection.fetchval(LATENESS_SQL)
    return Result(
        measurement="lateness of jobs with a run_at, p99",
        unit="ms",
        ours=p99,
        target=LATENESS_TARGET_MS,
        bound="at most",
        note=f"median {median:.0f} ms",
    )
