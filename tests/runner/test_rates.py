"""A claim that waits on the server gets a lane's whole rate, and never more."""

import asyncio

import pytest
from tests.conftest import Connect
from tests.runner.conftest import LiveServer, running, unreachable
from tests.support.figures import Figures
from tests.worker.rates import (
    FEW_SECONDS,
    bare_clients,
    check_from_above,
    check_from_below,
    fill_lanes,
    until_all_ran,
)

from fenceline import Fenceline

SECONDS = 10.0


def make_app() -> Fenceline:
    app = unreachable()

    @app.job()
    async def work() -> None: ...

    return app


async def test_a_rate_is_never_exceeded_over_http(live: LiveServer, token: str, connect: Connect) -> None:
    connection = await connect()
    lanes = await fill_lanes(connection, "rated", FEW_SECONDS)
    async with running(make_app(), live.url, token):
        await until_all_ran(connection)
    await check_from_above(connection, lanes)


@pytest.mark.timing
async def test_a_rate_is_kept_from_below_and_from_above(
    live: LiveServer, token: str, database: str, connect: Connect, figures: Figures
) -> None:
    connection = await connect()
    lanes = await fill_lanes(connection, "rated", SECONDS)
    with bare_clients(database) as bare:
        async with running(make_app(), live.url, token):
            await asyncio.sleep(SECONDS + 2)
    await check_from_above(connection, lanes)
    await check_from_below(connection, lanes, bare, figures, SECONDS)
