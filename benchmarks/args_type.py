"""Args stored as json beside jsonb: WAL of an enqueue and time of claim + finish, bare tables (docs/adr/0004)."""

import asyncpg

from benchmarks import bare, jobs
from benchmarks.measure import Result, Size, Work, alternate
from benchmarks.wal import wal_written

BATCHES = 4


def as_jsonb(sql: str) -> str:
    """A statement of the bare tables for their copy with jsonb; a claim gives text to the client either way."""
    return sql.replace("bare", "bare_jsonb").replace("args json ", "args jsonb ")


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    rounds = size.rounds(40)
    per_round = BATCHES * jobs.BATCH
    await connection.execute(as_jsonb(bare.CREATE_SQL).replace("args json", "args jsonb"))
    await connection.execute("alter table bare_jsonb.job alter column args type jsonb")
    results = []
    for args_bytes in (100, 1124):
        args = jobs.args_of(args_bytes)
        written = {"bare": 0, "bare_jsonb": 0}
        for schema in written:
            sql = bare.ENQUEUE_SQL.replace("bare.", f"{schema}.")
            # One round more than is measured: it warms plans and caches, and touches the pages in use.
            await connection.execute("checkpoint")
            await connection.execute(sql, [args] * per_round)
            before, _ = await wal_written(connection)
            for _ in range(rounds):
                await connection.execute(sql, [args] * per_round)
            written[schema] = (await wal_written(connection))[0] - before
        await connection.execute("vacuum analyze")

        async def drain(schema: str, count: int) -> None:
            claim = bare.CLAIM_SQL.replace("bare.", f"{schema}.")
            finish = bare.FINISH_SQL.replace("bare.", f"{schema}.")
            for _ in range(count // jobs.BATCH):
                rows = await connection.fetch(claim, jobs.BATCH)
                assert len(rows) == jobs.BATCH
                await connection.execute(finish, [row[0] for row in rows], [row[1] for row in rows])

        async def prepare_json() -> Work:
            return lambda: drain("bare", per_round)

        async def prepare_jsonb() -> Work:
            return lambda: drain("bare_jsonb", per_round)

        await drain("bare", per_round)
        await drain("bare_jsonb", per_round)
        await connection.execute("checkpoint")
        ours, theirs, ratio = await alternate(prepare_json, prepare_jsonb, rounds=rounds, jobs=per_round)
        total = rounds * per_round
        results += [
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
                ours=ours,
                bare=theirs,
                ratio=ratio,
            ),
        ]
    return results
