"""A connection that comes back, until it is closed for good."""

import pytest
from tests.conftest import Connect
from tests.worker.fleet import until

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.errors import ConnectionLost
from fenceline.runtime.reconnecting import ReconnectingConnection


async def test_one_that_is_retired_makes_no_new_connection(database: str, connect: Connect) -> None:
    async with Fenceline(database) as app:
        line = ReconnectingConnection("test", app_parts(app).database().connect)
        assert await line.call(calls.lanes.depth()) == 0
        line.close()
        assert await line.call(calls.lanes.depth()) == 0, "it comes back"
        line.retire()
        with pytest.raises(ConnectionLost, match="closed for good"):
            await line.call(calls.lanes.depth())
        look = (
            "select count(*) = 1 from pg_stat_activity "
            "where datname = current_database() and backend_type = 'client backend'"
        )
        connection = await connect()
        await until(lambda: connection.fetchval(look), "only the one that looks is left")
