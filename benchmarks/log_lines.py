"""What log lines cost: 100 handlers log 1,000 lines a second, and all statements of their child are counted."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import asyncpg

from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from fenceline import Context, Fenceline
from fenceline.runtime.reconnecting import ReconnectingConnection

HANDLERS = 100
LINES_PER_SECOND = 10  # of each
TARGET = 5.0


@contextlib.contextmanager
def counted() -> Iterator[list[str]]:
    """The SQL of every statement that workers send which are made meanwhile."""
    sent: list[str] = []
    original = ReconnectingConnection.call

    async def call(line: ReconnectingConnection, what: Any) -> Any:
        sent.append(what.sql)
        return await original(line, what)

    with mock.patch.object(ReconnectingConnection, "call", call):
        yield sent


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    app = Fenceline(await dsn_of(connection))
    seconds = 3.0 if size.quick else 10.0
    running = 0
    go, stop = asyncio.Event(), asyncio.Event()

    @app.job()
    async def talk(ctx: Context) -> None:
        nonlocal running
        running += 1
        await go.wait()
        while not stop.is_set():
            ctx.log("a line such as handlers write", number=running)
            await asyncio.sleep(1 / LINES_PER_SECOND)

    with counted() as sent:
        working = asyncio.create_task(app.run_worker(grace_seconds=5))
        jobs = await talk.enqueue_many([{}] * HANDLERS)
        while running < HANDLERS:  # noqa: ASYNC110 - as in the other measurements
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.0)  # they are announced
        before, began = len(sent), time.monotonic()
        go.set()
        await asyncio.sleep(seconds)
        statements, took = len(sent) - before, time.monotonic() - began
        stop.set()
        for job in jobs:
            await job.wait(30)
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
    await app.close()
    lines = await connection.fetchval("select count(*) from fenceline.log")
    assert lines > 0
    return [
        Result(
            measurement=f"statements of a child while {HANDLERS} handlers log",
            unit="per second",
            ours=statements / took,
            target=TARGET,
            bound="at most",
            note=f"{lines / took:,.0f} lines per second",
        )
    ]
