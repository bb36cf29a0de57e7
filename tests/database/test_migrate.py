import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import asyncpg
import pytest
from tests.support.patience import eventually

from fenceline.database.migrate import MigrationReport, check_schema, migrate, pending
from fenceline.database.schema_files import SchemaFiles, read_schema_files
from fenceline.errors import (
    FencelineError,
    MigrationBlocked,
    MigrationChanged,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[], Awaitable[Connection]]
WriteSchema: TypeAlias = Callable[..., SchemaFiles]
ReadCatalogue: TypeAlias = Callable[[Connection], Awaitable[list[str]]]

TABLE = "create table fenceline.thing (id bigint primary key);"
COLUMN = "alter table fenceline.thing add column note text;"


def answer(value: int) -> dict[str, str]:
    head = "create or replace function fenceline.answer() returns int language sql"
    return {"answer": f"{head} as 'select {value}';"}


async def test_an_empty_database_gets_everything(connect_empty: Connect) -> None:
    connection = await connect_empty()
    files = read_schema_files()
    with pytest.raises(SchemaMissing, match="run `fenceline migrate`"):
        await check_schema(connection)

    report = await migrate(connection)

    assert report.applied == tuple(migration.name for migration in files.migrations)
    assert report.code_applied
    assert report.number == files.number
    assert report.administrator_sql is None
    await check_schema(connection)
    assert not await pending(connection)


async def test_a_second_run_touches_nothing(connect_empty: Connect) -> None:
    connection = await connect_empty()
    await migrate(connection)
    rows = "select oid, xmin::text from pg_proc where pronamespace = 'fenceline'::regnamespace order by oid"
    before = await connection.fetch(rows)

    report = await migrate(connection)

    assert report == MigrationReport(number=read_schema_files().number)
    assert "up to date" in str(report)
    assert await connection.fetch(rows) == before


async def test_settings_of_the_session_survive(connect_empty: Connect) -> None:
    connection = await connect_empty()
    settings = "select current_setting('search_path'), current_setting('lock_timeout'), current_user"
    before = await connection.fetchrow(settings)
    await migrate(connection)
    assert await connection.fetchrow(settings) == before


async def test_of_twenty_migrators_one_does_the_work(connect_empty: Connect) -> None:
    connections = [await connect_empty() for _ in range(20)]
    reports = await asyncio.gather(*(migrate(connection) for connection in connections))
    assert sorted(bool(report.applied) for report in reports) == [False] * 19 + [True]
    assert sorted(report.code_applied for report in reports) == [False] * 19 + [True]
    assert await connections[0].fetchval("select count(*) from fenceline.migration") == read_schema_files().number


async def test_only_missing_migrations_are_applied(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    first, both = write_schema(migrations=[TABLE]), write_schema(migrations=[TABLE, COLUMN])
    await migrate(connection, files=first)
    waiting = await pending(connection, files=both)
    assert waiting.migrations == ("0002_pre_step",)
    assert not waiting.code
    with pytest.raises(SchemaOutdated, match="has number 1, this program needs 2: run `fenceline migrate`"):
        await check_schema(connection, files=both)

    report = await migrate(connection, files=both)

    assert report.applied == ("0002_pre_step",)
    await check_schema(connection, files=both)


async def test_a_program_runs_before_its_post_migrations(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    both = write_schema(migrations=[TABLE, COLUMN])
    last = dataclasses.replace(both.migrations[1], phase="post")
    await migrate(connection, files=dataclasses.replace(both, migrations=both.migrations[:1]))
    await check_schema(connection, files=dataclasses.replace(both, migrations=(both.migrations[0], last)))


async def test_a_changed_migration_is_refused_by_name(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    await migrate(connection, files=write_schema(migrations=[TABLE]))
    changed = write_schema(migrations=[TABLE + "\n-- changed", COLUMN])
    with pytest.raises(MigrationChanged, match="0001_pre_step"):
        await migrate(connection, files=changed)
    assert await connection.fetchval("select count(*) from fenceline.migration") == 1


async def test_an_older_program_leaves_a_newer_schema_alone(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    older = write_schema(migrations=[TABLE], functions=answer(1))
    await migrate(connection, files=write_schema(migrations=[TABLE, COLUMN], functions=answer(2)))

    report = await migrate(connection, files=older)

    assert report == MigrationReport(number=2, newer=True)
    assert "newer than this program" in str(report)
    assert await connection.fetchval("select fenceline.answer()") == 2
    assert not await pending(connection, files=older)
    await check_schema(connection, files=older)


async def test_an_older_program_refuses_an_incompatible_schema(
    connect_empty: Connect, write_schema: WriteSchema
) -> None:
    connection = await connect_empty()
    older = write_schema(migrations=[TABLE])
    breaking = ["-- compatible_from: 2\n" + COLUMN, "select 1;"]
    await migrate(connection, files=write_schema(migrations=[TABLE, *breaking]))
    for act in (migrate, check_schema, pending):
        with pytest.raises(SchemaTooNew, match="knows number 2 or later, this one knows 1: upgrade"):
            await act(connection, files=older)
    # Compatible again is what came after the break, not what came before it.
    await check_schema(connection, files=write_schema(migrations=[TABLE, breaking[0]]))


async def test_a_failure_changes_nothing_and_names_the_file(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    with pytest.raises(asyncpg.DivisionByZeroError) as caught:
        await migrate(connection, files=write_schema(migrations=[TABLE, "select 1 / 0;"]))
    assert "while applying 0002_pre_step" in caught.value.__notes__
    broken = {"broken": "create or replace function fenceline.broken() nonsense;"}
    with pytest.raises(asyncpg.PostgresSyntaxError) as syntax:
        await migrate(connection, files=write_schema(migrations=[TABLE], functions=broken))
    assert "while applying functions/broken.sql" in syntax.value.__notes__
    assert await connection.fetchval("select to_regnamespace('fenceline')") is None


async def test_a_held_lock_delays_but_does_not_stall(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection, holder = await connect_empty(), await connect_empty()
    files = write_schema(migrations=[TABLE, COLUMN])
    await migrate(connection, files=write_schema(migrations=[TABLE]))
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("select from fenceline.thing")

    with pytest.raises(MigrationBlocked, match="run `fenceline migrate` again"):
        await migrate(connection, files=files, lock_timeout_seconds=0.05, attempts=2)
    retrying = asyncio.create_task(migrate(connection, files=files, lock_timeout_seconds=0.05, attempts=10_000))
    waits = "select exists (select from pg_locks where pid = $1 and not granted)"
    await eventually(lambda: holder.fetchval(waits, connection.get_server_pid()), "the migrator waits")
    await transaction.rollback()
    assert (await retrying).applied == ("0002_pre_step",)


async def test_a_foreign_schema_is_left_alone(connect_empty: Connect) -> None:
    connection = await connect_empty()
    await connection.execute("create schema fenceline; create table fenceline.posts (id int)")
    with pytest.raises(SchemaForeign, match="did not make"):
        await migrate(connection)
    with pytest.raises(SchemaMissing):
        await check_schema(connection)


async def test_a_transaction_of_the_caller_is_refused(connect_empty: Connect) -> None:
    connection = await connect_empty()
    async with connection.transaction():
        with pytest.raises(FencelineError, match="not inside a transaction"):
            await migrate(connection)


async def test_replayed_migrations_equal_a_fresh_install(
    connect_empty: Connect, database: str, read_catalogue: ReadCatalogue
) -> None:
    """`database` was installed at once; here the migrations come one by one, as with each release."""
    replayed = await connect_empty()
    files = read_schema_files()
    for count in range(1, files.number + 1):
        # Today's views need today's tables.
        await migrate(
            replayed, files=dataclasses.replace(files, migrations=files.migrations[:count], code=(), setup="")
        )
    await migrate(replayed, files=files)
    fresh: Connection = await asyncpg.connect(database)
    try:
        assert await read_catalogue(replayed) == await read_catalogue(fresh)
    finally:
        await fresh.close()


async def test_function_bodies_are_valid(connect_empty: Connect) -> None:
    """The migrator cannot check them, as functions may name each other in any order; afterwards all exist."""
    connection = await connect_empty()
    await migrate(connection)
    await connection.execute("set check_function_bodies = on; set search_path = pg_catalog, pg_temp")
    for file in read_schema_files().code:
        await connection.execute(file.text)
