"""How our sessions are set up at the server, whatever its defaults are."""

from typing import Any

import asyncpg
import pytest
from tests.client.conftest import Worker

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database.call import Call
from fenceline.runtime.session_settings import EVERY, limits


def show(name: str) -> Call[str]:
    return Call(f"select current_setting('{name}')", (), lambda rows: str(rows[0][0]), repeatable=True)


def set_default(administrator: Any, dsn: str, name: str, value: str) -> None:
    database = dsn.partition("?")[0].rpartition("/")[2]
    administrator.execute(f"alter database \"{database}\" set {name} = '{value}'")


async def test_a_session_has_our_settings_and_those_that_were_asked_for(database: str) -> None:
    app = Fenceline(database)
    ours = app_parts(app).make_database(2, settings=limits(lock_seconds=0.5, statement_seconds=7))
    # The first connection looks whether a pooler stands between, the others know.
    connections = [await ours.connect(), await ours.connect({"lock_timeout": "123ms"})]
    try:
        for connection, lock_timeout in zip(connections, ("500ms", "123ms"), strict=True):
            rows = await connection.fetch("select name, setting from pg_settings")
            settings = {row["name"]: row["setting"] for row in rows}
            assert await connection.fetchval("show lock_timeout") == lock_timeout
            assert await connection.fetchval("show statement_timeout") == "7s"
            assert settings["default_transaction_isolation"] == "read committed"
            assert {name for name in EVERY if name not in settings} == set()
            assert settings["client_connection_check_interval"] == "2000"
    finally:
        for connection in connections:
            connection.terminate()
        await ours.close()
        await app.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_another_default_isolation_does_not_reach_our_sessions(
    database: str, worker: Worker, administrator: Any, level: str
) -> None:
    set_default(administrator, database, "default_transaction_isolation", level)
    async with Fenceline(database, pool_size=1) as app:
        assert (await app.enqueue("work")).created
        assert await app_parts(app).database().call(show("transaction_isolation")) == "read committed"
        async with app_parts(app).database().transaction_connection() as connection:
            assert await connection.fetchval("show transaction_isolation") == "read committed"
        assert app.sync.enqueue("work").created
    assert await worker.count_jobs() == 2


async def test_the_isolation_of_a_connection_that_the_caller_brings_is_the_callers(
    database: str, administrator: Any
) -> None:
    set_default(administrator, database, "default_transaction_isolation", "repeatable read")
    connection = await asyncpg.connect(database)
    try:
        async with Fenceline(database) as app, connection.transaction():
            await app.enqueue("work", connection=connection)
            assert await connection.fetchval("show transaction_isolation") == "repeatable read"
    finally:
        await connection.close()
