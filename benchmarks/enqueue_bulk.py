"""20,000 jobs by one call of enqueue_many, beside a COPY of the same finished rows into the same tables.

The COPY gets its ids and rows ready-made, in binary, in one transaction: the fastest way into these tables.
"""

import asyncpg

from benchmarks import jobs
from benchmarks.measure import Result, Size, Work, alternate

JOB_COLUMNS = ("id", "priority", "max_attempts", "kind", "lane", "tenant", "args")
READY_COLUMNS = ("job_id", "seq", "priority", "lane", "kind", "tenant")
TARGET = 0.50


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = 20_000
    args = jobs.args_of(100)

    async def copy_rows(job_rows: list[tuple[object, ...]], ready_rows: list[tuple[object, ...]]) -> None:
        async with connection.transaction():
            await connection.copy_records_to_table(
                "job", schema_name="fenceline", columns=JOB_COLUMNS, records=job_rows
            )
            await connection.copy_records_to_table(
                "ready", schema_name="fenceline", columns=READY_COLUMNS, records=ready_rows
            )

    async def prepare_ours() -> Work:
        return lambda: jobs.enqueue(connection, count, args)

    async def prepare_bare() -> Work:
        # Fresh ids, so that both sides append at the right end of the indexes.
        ids = await connection.fetchval("select array(select fenceline.next_id() from generate_series(1, $1))", count)
        job_rows: list[tuple[object, ...]] = [(i, 0, 3, "noop", "default", "default", args) for i in ids]
        ready_rows: list[tuple[object, ...]] = [(i, i, 0, "default", "noop", "default") for i in ids]
        return lambda: copy_rows(job_rows, ready_rows)

    await (await prepare_ours())()
    await (await prepare_bare())()
    await connection.execute("checkpoint")
    ours, theirs, ratio = await alternate(prepare_ours, prepare_bare, rounds=size.rounds(11), jobs=count)
    return [
        Result(
            measurement="bulk enqueue of 20,000 / COPY of the same rows",
            unit="jobs/s",
            ours=ours,
            bare=theirs,
            ratio=ratio,
            target=TARGET,
        )
    ]
