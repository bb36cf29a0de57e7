from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import TypeAlias

import asyncpg
import pytest

from fenceline.database.migrate import migrate
from fenceline.database.schema_files import SchemaFiles

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[], Awaitable[Connection]]
WriteSchema: TypeAlias = Callable[..., SchemaFiles]

TABLE = "create table fenceline.thing (id bigint primary key); insert into fenceline.thing values (1), (2);"


def function(name: str, signature: str, body: str) -> dict[str, str]:
    return {name: f"create or replace function fenceline.{name}{signature} language sql as $$ {body} $$;"}


def view(name: str, query: str) -> dict[str, str]:
    return {name: f"create or replace view fenceline.{name} as {query};"}


DOUBLE = function("double", "(p_id bigint) returns bigint", "select p_id * 2")
DOUBLED = view("doubled", "select id, fenceline.double(id) as twice from fenceline.thing")


async def names(connection: Connection) -> list[str]:
    rows = await connection.fetch(
        """
        select p.oid::regprocedure::text as name from pg_proc p
        where p.pronamespace = 'fenceline'::regnamespace and p.proname not in ('schema_version', 'code_number')
        union all
        select c.oid::regclass::text from pg_class c
        where c.relnamespace = 'fenceline'::regnamespace and c.relkind = 'v' order by name
        """
    )
    return [row["name"] for row in rows]


async def test_functions_may_name_each_other_in_any_order(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    first = function("a", "() returns int", "select fenceline.b()")
    second = function("b", "() returns int", "select 7")
    await migrate(connection, files=write_schema(migrations=[TABLE], functions=first | second))
    assert await connection.fetchval("select fenceline.a()") == 7


async def test_what_no_file_defines_is_dropped(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    await migrate(connection, files=write_schema(migrations=[TABLE], functions=DOUBLE, views=DOUBLED))

    report = await migrate(connection, files=write_schema(migrations=[TABLE], functions=DOUBLE))
    assert (report.retired, report.dropped) == (("fenceline.doubled",), ())
    assert "set aside fenceline.doubled" in str(report)
    files = write_schema(migrations=[TABLE])
    report = await migrate(connection, files=files, keep_seconds=0)
    assert (report.retired, report.dropped) == (("fenceline.double(bigint)",), ())
    assert await connection.fetchval("select twice from fenceline.doubled where id = 2") == 4

    assert (await migrate(connection, files=files)).dropped == ()
    report = await migrate(connection, files=files, keep_seconds=0)
    assert set(report.dropped) == {"fenceline.doubled", "fenceline.double(bigint)"}
    assert "dropped fenceline.double(bigint)" in str(report)
    assert await names(connection) == []


async def test_what_a_file_defines_again_is_not_dropped(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    with_it, without = write_schema(migrations=[TABLE], functions=DOUBLE), write_schema(migrations=[TABLE])
    for files in (with_it, without, with_it, with_it):
        report = await migrate(connection, files=files, keep_seconds=0)
    assert report.dropped == ()
    assert await names(connection) == ["fenceline.double(bigint)"]


async def test_what_was_set_aside_stays_while_an_older_worker_lives(
    connect_empty: Connect, write_schema: WriteSchema
) -> None:
    """One that was there before, or one of another version that came later."""
    connection = await connect_empty()
    table = """
        create table fenceline.worker (version text, runner boolean default false, started_at timestamptz,
                                       lease_until timestamptz default 'infinity', stopped_at timestamptz);
    """
    files = write_schema(migrations=[table])
    await migrate(connection, files=write_schema(migrations=[table], functions=DOUBLE))
    await connection.execute(
        "insert into fenceline.worker (version, started_at) values ($1, now())", version("fenceline")
    )
    await migrate(connection, files=files)

    assert (await migrate(connection, files=files, keep_seconds=0)).dropped == ()
    await connection.execute("update fenceline.worker set started_at = clock_timestamp(), version = '0.0.1'")
    assert (await migrate(connection, files=files, keep_seconds=0)).dropped == ()
    await connection.execute("update fenceline.worker set stopped_at = clock_timestamp()")
    assert (await migrate(connection, files=files, keep_seconds=0)).dropped == ("fenceline.double(bigint)",)


CHANGES = {
    "return type": (function("double", "(p_id bigint) returns text", "select (p_id * 2)::text"), DOUBLED),
    "parameter name": (
        function("double", "(p_number bigint) returns bigint", "select p_number * 2"),
        DOUBLED,
    ),
    "parameter type": (function("double", "(p_id numeric) returns numeric", "select p_id * 2"), DOUBLED),
    "one parameter more": (
        function("double", "(p_id bigint, p_by int default 2) returns bigint", "select p_id * p_by"),
        DOUBLED,
    ),
    "view column dropped": (
        DOUBLE,
        view("doubled", "select fenceline.double(id) as twice from fenceline.thing"),
    ),
    "view no longer there": (DOUBLE, {}),
    "both gone, another there": (function("triple", "(p_id bigint) returns bigint", "select p_id * 3"), {}),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_an_upgrade_gives_what_a_fresh_install_gives(
    connect_empty: Connect, write_schema: WriteSchema, change: str
) -> None:
    connection = await connect_empty()
    functions, views = CHANGES[change]
    await migrate(connection, files=write_schema(migrations=[TABLE], functions=DOUBLE, views=DOUBLED))
    files = write_schema(migrations=[TABLE], functions=functions, views=views)

    await migrate(connection, files=files)
    if views:
        assert [int(row["twice"]) for row in await connection.fetch("select twice from fenceline.doubled")] == [2, 4]
    await migrate(connection, files=files, keep_seconds=0)
    upgraded = await names(connection)
    await connection.execute("drop schema fenceline cascade")
    await migrate(connection, files=files)
    assert upgraded == await names(connection)


async def test_what_others_built_on_ours_survives(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    await migrate(connection, files=write_schema(migrations=[TABLE], functions=DOUBLE, views=DOUBLED))
    await connection.execute("create view public.report as select sum(twice) as total from fenceline.doubled")

    wider = view("doubled", "select id, fenceline.double(id) as twice, 'x'::text as more from fenceline.thing")
    tripled = function("double", "(p_id bigint) returns bigint", "select p_id * 3")
    await migrate(connection, files=write_schema(migrations=[TABLE], functions=tripled, views=wider))
    assert await connection.fetchval("select total from public.report") == 9

    # A change that would take their view away is refused, whole.
    narrower = view("doubled", "select id from fenceline.thing")
    with pytest.raises(asyncpg.InvalidTableDefinitionError):
        await migrate(connection, files=write_schema(migrations=[TABLE], functions=DOUBLE, views=narrower))
    assert await connection.fetchval("select total from public.report") == 9


async def test_a_function_that_a_table_needs_stays(connect_empty: Connect, write_schema: WriteSchema) -> None:
    connection = await connect_empty()
    table = """
        create function fenceline.start() returns bigint language sql as 'select 5::bigint';
        create table fenceline.thing (id bigint default fenceline.start());
    """
    await migrate(connection, files=write_schema(migrations=[table], functions=DOUBLE))
    files = write_schema(migrations=[table])
    await migrate(connection, files=files)
    report = await migrate(connection, files=files, keep_seconds=0)
    assert report.dropped == ("fenceline.double(bigint)",)
    assert await names(connection) == ["fenceline.start()"]
