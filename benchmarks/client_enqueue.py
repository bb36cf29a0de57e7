"""What the client adds: enqueues through `Fenceline` beside the SQL function called bare, on one connection each.

And what it costs to import it, in a fresh process.
"""

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from benchmarks import jobs
from benchmarks.measure import Result, Size, Work, alternate
from fenceline import Fenceline

PER_ROUND = 50
MANY = 20_000
SINGLE_TARGET = 0.80
MANY_TARGET = 0.70
IMPORT_TARGET_MS = 150
IMPORT = "import time; t = time.perf_counter(); import fenceline; print(time.perf_counter() - t)"


async def dsn_of(connection: asyncpg.Connection) -> str:
    """The DSN by which a client reaches the database of this connection."""
    name = await connection.fetchval("select current_database()")
    given = os.environ.get("FENCELINE_BENCH_DSN")
    if given:
        return urlunsplit(urlsplit(given)._replace(path=f"/{name}"))
    user, folder, port = await connection.fetchrow(
        "select current_user, current_setting('unix_socket_directories'), current_setting('port')"
    )
    return f"postgresql://{user}@/{name}?host={folder}&port={port}"


def import_milliseconds() -> float:
    """The best of several fresh processes: the others met something else that the machine was doing."""
    runs = [
        subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs) * 1000


async def measure_single(connection: asyncpg.Connection, app: Fenceline, size: Size) -> Result:
    args = json.loads(jobs.args_of(100))
    text = jobs.args_of(100)
    bare = await connection.prepare("select * from fenceline.enqueue('noop', $1::json)")

    @app.job()
    async def noop(path: str, number: int) -> None: ...

    async def through_client() -> None:
        for _ in range(PER_ROUND):
            await noop.enqueue(**args)

    async def by_sql() -> None:
        for _ in range(PER_ROUND):
            await bare.fetchrow(text)

    async def prepare_ours() -> Work:
        return through_client

    async def prepare_bare() -> Work:
        return by_sql

    for work in (through_client, by_sql, through_client, by_sql):
        await work()
    ours, theirs, ratio = await alternate(prepare_ours, prepare_bare, rounds=size.rounds(100), jobs=PER_ROUND)
    return Result(
        measurement="single enqueue through the client / the SQL function",
        unit="jobs/s",
        ours=ours,
        bare=theirs,
        ratio=ratio,
        target=SINGLE_TARGET,
    )


async def measure_many(connection: asyncpg.Connection, app: Fenceline, size: Size) -> Result:
    args = json.loads(jobs.args_of(100))

    @app.job(kind="noop.many")
    async def noop(path: str, number: int) -> None: ...

    async def through_client() -> None:
        made = await noop.enqueue_many([args] * MANY)
        assert len(made) == MANY

    async def prepare_ours() -> Work:
        return through_client

    async def prepare_bare() -> Work:
        return lambda: jobs.enqueue(connection, MANY, jobs.args_of(100))

    await through_client()
    await jobs.enqueue(connection, MANY, jobs.args_of(100))
    await connection.execute("checkpoint")
    ours, theirs, ratio = await alternate(prepare_ours, prepare_bare, rounds=size.rounds(11), jobs=MANY)
    return Result(
        measurement="enqueue_many of 20,000 through the client / the SQL function",
        unit="jobs/s",
        ours=ours,
        bare=theirs,
        ratio=ratio,
        target=MANY_TARGET,
    )


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    async with Fenceline(await dsn_of(connection), pool_size=1) as app:
        return [
            await measure_single(connection, app, size),
            await measure_many(connection, app, size),
            Result(
                measurement="import fenceline",
                unit="ms",
                ours=import_milliseconds(),
                target=IMPORT_TARGET_MS,
                bound="at most",
            ),
        ]
