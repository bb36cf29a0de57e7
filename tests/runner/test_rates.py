"""A claim that waits on the server gets a lane's whole rate, and never more."""

import asyncio

import pytest
from tests.conftest import Connect
from tests.runner.conftest import LiveServer, running, unreachable
from tests.worker.rates import check_lanes, fill_lanes

SECONDS = 10.0


@pytest.mark.alone
async def test_a_rate_is_kept_from_below_and_from_above(live: LiveServer, token: str, connect: Connect) -> None:
    app = unreachable()

    @app.job()
    async def work() -> None: ...

    connection = await connect()
    lanes = await fill_lanes(connection, "rated", SECONDS)
    async with running(app, live.url, token):
        await asyncio.sleep(SECONDS + 2)
    await check_lanes(connection, lanes, SECONDS)
