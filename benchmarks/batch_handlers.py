"""20,000 jobs, each a row of a ledger and one in a hundred failing at first: a batch handler, and a handler of one job.

Both write in `ctx.transaction()`, so that the row and the end of its job are one commit. The clock runs until every row
is there, the retries' too.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import asyncpg

from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from fenceline import BatchContext, BatchItem, Context, Fenceline, Retry

JOBS = 20_000
BATCH = 100
SOON = Retry(max_attempts=3, backoff="fixed", base=0.1)
#: In one run, on one machine: less would not be worth a handler of another shape.
TARGET = 3.0
WRITE = "insert into public.ledger values ($1)"


@dataclass
class Entry:
    number: int

    def fails(self, attempt: int) -> bool:
        return attempt == 1 and self.number % 100 == 7


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = JOBS // 10 if size.quick else JOBS
    dsn = await dsn_of(connection)
    together, calls = await _run(connection, dsn, count, _declare_batch)
    one_by_one, single_calls = await _run(connection, dsn, count, _declare_single)
    return [
        Result(
            measurement=f"{count} jobs in batches of {BATCH} / one by one, 1 % failing at first, in ctx.transaction()",
            unit="jobs/s",
            ours=count / together,
            bare=count / one_by_one,
            ratio=one_by_one / together,
            target=TARGET,
            note=f"{calls} calls, one by one {single_calls}; every row written once",
        )
    ]


Declare = Callable[[Fenceline, list[int]], Callable[[list[dict[str, int]]], Awaitable[object]]]


def _declare_batch(app: Fenceline, calls: list[int]) -> Callable[[list[dict[str, int]]], Awaitable[object]]:
    @app.job(batch=BATCH, batch_wait=1.0, retry=SOON)
    async def write(ctx: BatchContext, jobs: list[BatchItem[Entry]]) -> None:
        calls.append(len(jobs))
        for item in jobs:
            if item.args.fails(item.attempt):
                item.fail("not yet")
        rows = [(item.args.number,) for item in jobs if not item.args.fails(item.attempt)]
        async with ctx.transaction() as conn:
            await conn.executemany(WRITE, rows)

    return write.enqueue_many


def _declare_single(app: Fenceline, calls: list[int]) -> Callable[[list[dict[str, int]]], Awaitable[object]]:
    @app.job(retry=SOON)
    async def write_one(ctx: Context, number: int) -> None:
        calls.append(1)
        if Entry(number).fails(ctx.attempt):
            raise RuntimeError("not yet")
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, number)

    return write_one.enqueue_many


async def _run(connection: asyncpg.Connection, dsn: str, count: int, declare: Declare) -> tuple[float, int]:
    """Seconds, and how many calls of the handler."""
    await connection.execute("drop table if exists public.ledger; create table public.ledger (number integer)")
    app, calls = Fenceline(dsn), list[int]()
    await declare(app, calls)([{"number": number} for number in range(count)])
    started = time.perf_counter()
    working = asyncio.create_task(app.run_worker(grace_seconds=1))
    while await connection.fetchval("select count(*) from public.ledger") < count:  # noqa: ASYNC110 - no event for it
        await asyncio.sleep(0.05)
    took = time.perf_counter() - started
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    await app.close()
    written = await connection.fetchrow("select count(*), count(distinct number) from public.ledger")
    assert tuple(written) == (count, count)
    assert sum(calls) == count + count // 100, "what has failed, and nothing else, was tried again"
    return took, len(calls)
