"""A lane with a rate limit gets its whole rate, and never more, however many workers share it."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from tests.conftest import Connect
from tests.worker.in_process_worker import running
from tests.worker.rates import SECONDS, check_lanes, fill_lanes

from fenceline import Fenceline


def make_app(database: str) -> Fenceline:
    app = Fenceline(database)

    @app.job()
    async def work() -> None: ...

    return app


@pytest.mark.alone
async def test_a_rate_is_kept_from_below_and_from_above(database: str, connect: Connect) -> None:
    connection = await connect()
    alone, shared = await fill_lanes(connection, "alone"), await fill_lanes(connection, "shared")
    async with AsyncExitStack() as stack:
        for lanes in (alone, shared, shared, shared):
            await stack.enter_async_context(running(make_app(database), lanes=lanes))
        await asyncio.sleep(SECONDS + 2)
    await check_lanes(connection, alone)
    await check_lanes(connection, shared)
