"""Single enqueues, a commit each, beside INSERTs of the same row into a bare copy of the job table."""

import asyncpg

from benchmarks import bare, jobs
from benchmarks.measure import Result, Size, Work, alternate

PER_ROUND = 50
TARGET = 0.80


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    args = jobs.args_of(100)
    enqueue = await connection.prepare("select * from fenceline.enqueue('noop', $1::json)")
    insert = await connection.prepare(bare.INSERT_SQL)

    async def enqueue_some() -> None:
        for _ in range(PER_ROUND):
            await enqueue.fetchrow(args)

    async def insert_some() -> None:
        for _ in range(PER_ROUND):
            await insert.fetchrow(args)

    async def prepare_ours() -> Work:
        return enqueue_some

    async def prepare_bare() -> Work:
        return insert_some

    for work in (enqueue_some, insert_some, enqueue_some, insert_some):
        await work()
    await connection.execute("checkpoint")
    ours, theirs, ratio = await alternate(prepare_ours, prepare_bare, rounds=size.rounds(100), jobs=PER_ROUND)
    return [
        Result(
            measurement="single enqueue / one-row INSERT, a commit each",
            unit="jobs/s",
            ours=ours,
            bare=theirs,
            ratio=ratio,
            target=TARGET,
        )
    ]
