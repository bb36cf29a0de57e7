"""WAL per job with the range index that lists use, beside three b-trees in its place (docs/adr/0003)."""

import asyncpg

from benchmarks.measure import Result, Size
from benchmarks.wal import wal_per_job

B_TREES_SQL = """
drop index fenceline.job_lists;
create index on fenceline.job (kind, id);
create index on fenceline.job (lane, id);
create index on fenceline.job (tenant, id);
"""


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = 5_000 if size.quick else 20_000
    ours = await wal_per_job(connection, args_bytes=100, count=count)
    await connection.execute(B_TREES_SQL)
    b_trees = await wal_per_job(connection, args_bytes=100, count=count)
    return [
        Result(
            measurement="WAL per job: BRIN of kind, lane, tenant / three b-trees",
            unit="B",
            ours=ours.total,
            bare=b_trees.total,
            ratio=ours.total / b_trees.total,
        )
    ]
