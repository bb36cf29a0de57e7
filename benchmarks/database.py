"""A migrated database for one measurement, on `$FENCELINE_BENCH_DSN` or an embedded PostgreSQL of its own."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from benchmarks.bare import CREATE_SQL
from fenceline.database.embedded import EmbeddedPostgres
from fenceline.database.migrate import migrate


@contextmanager
def server() -> Iterator[str]:
    given = os.environ.get("FENCELINE_BENCH_DSN")
    if given:
        yield given
        return
    with (
        tempfile.TemporaryDirectory(prefix="fenceline-bench-") as folder,
        EmbeddedPostgres(Path(folder)) as dsn,
    ):
        yield dsn


@asynccontextmanager
async def fresh_database(beside: str | None = None) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a new database with the schemas `fenceline` and `bare`, dropped afterwards.

    `beside`: the DSN of another one, on whose server it is made.
    """
    with nullcontext(beside) if beside is not None else server() as dsn:
        name = f"fenceline_bench_{uuid4().hex[:12]}"
        administrator = await asyncpg.connect(dsn)
        try:
            await administrator.execute(f'create database "{name}" template template0')
            try:
                connection = await asyncpg.connect(urlunsplit(urlsplit(dsn)._replace(path=f"/{name}")))
                try:
                    await migrate(connection)
                    await connection.execute("select fenceline.create_partitions()")
                    await connection.execute(CREATE_SQL)
                    # The bare statements get what our functions set for themselves: plans by index, whatever
                    # the statistics say of tables that were just filled.
                    for setting in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"):
                        await connection.execute(f"set {setting} = off")
                    # What a server does in the background belongs to no side of a comparison.
                    for table in ("fenceline.ready", "fenceline.running", "bare.ready", "bare.running"):
                        await connection.execute(f"alter table {table} set (autovacuum_enabled = off)")
                    yield connection
                finally:
                    await connection.close()
            finally:
                await administrator.execute(f'drop database "{name}" with (force)')
        finally:
            await administrator.close()
