"""Args stored as json beside jsonb, in bare tables: WAL of an enqueue, time of claim + finish (docs/adr/0004)."""

from collections.abc import Awaitable, Callable

import asyncpg

from benchmarks import bare, jobs
from benchmarks.measure import Result, Size, Work, alternate
from benchmarks.wal import wal_written

BATCHES = 4
SCHEMAS = ("bare", "bare_jsonb")


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    await connection.execute(bare.CREATE_SQL.replace("bare", "bare_jsonb"))
    await connection.execute("alter table bare_jsonb.job alter column args type jsonb")
    results = []
    for args_bytes in (100, 1124):
        results += await compare(connection, args_bytes=args_bytes, rounds=size.rounds(40))
    return results


async def compare(connection: asyncpg.Connection, *, args_bytes: int, rounds: int) -> list[Result]:
    per_round = BATCHES * jobs.BATCH
    args = jobs.args_of(args_bytes)
    written: dict[str, int] = {}
    for schema in SCHEMAS:
        sql = bare.ENQUEUE_SQL.replace("bare.", f"{schema}.")
        # One round more than is measured: it warms plans and caches, and touches the pages in use (`wal.py`).
        await connection.execute("checkpoint")
        await connection.execute(sql, [args] * per_round)
        before, _ = await wal_written(connection)
        for _ in range(rounds):
            await connection.execute(sql, [args] * per_round)
        written[schema] = (await wal_written(connection))[0] - before
    await connection.execute("vacuum analyze")

    async def drain(schema: str) -> None:
        claim = bare.CLAIM_SQL.replace("bare.", f"{schema}.")
        finish = bare.FINISH_SQL.replace("bare.", f"{schema}.")
        for _ in range(BATCHES):
            rows = await connection.fetch(claim, jobs.BATCH)
            assert len(rows) == jobs.BATCH
            await connection.execute(finish, [row[0] for row in rows], [row[1] for row in rows])

    def prepare(schema: str) -> Callable[[], Awaitable[Work]]:
        async def ready() -> Work:
            return lambda: drain(schema)

        return ready

    for schema in SCHEMAS:
        await drain(schema)
    await connection.execute("checkpoint")
    as_json, as_jsonb, ratio = await alternate(prepare("bare"), prepare("bare_jsonb"), rounds=rounds, jobs=per_round)
    total = rounds * per_round
    return [
        Result(
            measurement=f"WAL per enqueue, args of {args_bytes} bytes: json / jsonb",
            unit="B",
            ours=written["bare"] / total,
            bare=written["bare_jsonb"] / total,
            ratio=written["bare"] / written["bare_jsonb"],
        ),
        Result(
            measurement=f"claim + finish, args of {args_bytes} bytes: json / jsonb",
            unit="jobs/s",
            ours=as_json,
            bare=as_jsonb,
            ratio=ratio,
        ),
    ]
