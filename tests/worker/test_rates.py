"""A lane with a rate limit gets its whole rate, and never more, however many workers share it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from tests.conftest import Connect
from tests.support.figures import Figures
from tests.worker.fleet import Connection
from tests.worker.in_process_worker import running
from tests.worker.rates import (
    FEW_SECONDS,
    SECONDS,
    bare_clients,
    check_from_above,
    check_from_below,
    fill_lanes,
    until_all_ran,
)

from fenceline import Fenceline


def make_app(database: str) -> Fenceline:
    app = Fenceline(database)

    @app.job()
    async def work() -> None: ...

    return app


@contextlib.asynccontextmanager
async def working(database: str, connection: Connection, seconds: float) -> AsyncIterator[list[list[str]]]:
    """The lanes of a worker by itself, and of three that share theirs, with more jobs than start in so many seconds."""
    alone, shared = [await fill_lanes(connection, prefix, seconds) for prefix in ("alone", "shared")]
    async with AsyncExitStack() as stack:
        for lanes in (alone, shared, shared, shared):
            await stack.enter_async_context(running(make_app(database), lanes=lanes))
        yield [alone, shared]


async def test_a_rate_is_never_exceeded_however_many_share_it(database: str, connect: Connect) -> None:
    connection = await connect()
    async with working(database, connection, FEW_SECONDS) as groups:
        await until_all_ran(connection)
    for lanes in groups:
        await check_from_above(connection, lanes)


@pytest.mark.timing
async def test_a_rate_is_kept_from_below_and_from_above(database: str, connect: Connect, figures: Figures) -> None:
    connection = await connect()
    with bare_clients(database) as bare:
        async with working(database, connection, SECONDS) as groups:
            await asyncio.sleep(SECONDS + 2)
    for lanes in groups:
        await check_from_above(connection, lanes)
        await check_from_below(connection, lanes, bare, figures)
