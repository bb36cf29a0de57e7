"""WAL per job from enqueue to finished, in bytes of records.

Full-page images are left out: how many there are says how often the server checkpoints, not what a job costs.
There are none when every page that is written is new, or was written before since the last checkpoint. So: a
checkpoint, jobs that touch the pages in use, then the jobs that are counted; and an assertion that no further
checkpoint, and next to no image, came in between.

The bytes are those of this session where the server tells (PostgreSQL 18), else of the whole server, which must
then be idle otherwise.
"""

from dataclasses import dataclass

import asyncpg

from benchmarks import jobs
from benchmarks.measure import Result, Size

SESSION_WAL_SQL = "select wal_bytes::bigint as bytes, wal_fpi as images from pg_stat_get_backend_wal(pg_backend_pid())"
SERVER_WAL_SQL = "select wal_bytes::bigint as bytes, wal_fpi as images from pg_stat_wal"
REDO_SQL = "select redo_lsn::text from pg_control_checkpoint()"

TARGET_BYTES = 1100
TARGET_MORE_BYTES = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class WalPerJob:
    enqueue: float
    drain: float

    @property
    def total(self) -> float:
        return self.enqueue + self.drain


async def wal_written(connection: asyncpg.Connection) -> tuple[int, int]:
    """Bytes of WAL so far, and full-page images among them."""
    # Statistics reach the shared counters when a transaction ends, and at most once a second unless asked.
    await connection.execute("select pg_stat_force_next_flush()")
    sql = SESSION_WAL_SQL if connection.get_server_version().major >= 18 else SERVER_WAL_SQL
    row = await connection.fetchrow(sql)
    assert row is not None
    return row["bytes"], row["images"]


async def wal_per_job(connection: asyncpg.Connection, *, args_bytes: int, count: int) -> WalPerJob:
    args = jobs.args_of(args_bytes)
    worker_id = await connection.fetchval(jobs.WORKER_SQL)
    # Emptied pages would be used again one by one, each with an image.
    await connection.execute("vacuum fenceline.ready, fenceline.running")
    await connection.execute("checkpoint")
    await jobs.enqueue(connection, 4 * jobs.BATCH, args)
    await jobs.drain(connection, worker_id, 4 * jobs.BATCH)

    redo = await connection.fetchval(REDO_SQL)
    before, images_before = await wal_written(connection)
    await jobs.enqueue(connection, count, args)
    enqueued, _ = await wal_written(connection)
    await jobs.drain(connection, worker_id, count)
    after, images_after = await wal_written(connection)
    assert await connection.fetchval(REDO_SQL) == redo, "a checkpoint came in between: run again"
    images = images_after - images_before
    assert images < count / 2000, f"{images} full-page images are among the bytes"
    return WalPerJob(enqueue=(enqueued - before) / count, drain=(after - enqueued) / count)


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = 5_000 if size.quick else 20_000
    small = await wal_per_job(connection, args_bytes=100, count=count)
    large = await wal_per_job(connection, args_bytes=1124, count=count)
    return [
        Result(
            measurement="WAL per job, enqueue to finished, args of 100 bytes",
            unit="B",
            ours=small.total,
            target=TARGET_BYTES,
            bound="at most",
            note=f"enqueue {small.enqueue:,.0f} B, claim + finish {small.drain:,.0f} B",
        ),
        Result(
            measurement="WAL that 1 KB more of args adds",
            unit="B",
            ours=large.total - small.total,
            target=TARGET_MORE_BYTES,
            bound="at most",
            note=f"enqueue {large.enqueue:,.0f} B, claim + finish {large.drain:,.0f} B",
        ),
    ]
