"""Migrating while producers and workers of the release before go on: no call fails or waits long, and they go on
working on the new schema.
"""

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeAlias
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from tests.conftest import Connect, create_database, drop_database
from tests.database.release import MIGRATIONS, install, read_release
from tests.database.traffic_0_1_0 import Traffic, traffic_of, until, work_once
from tests.support.figures import Figures

from fenceline.database.migrate import check_schema, migrate
from fenceline.database.schema_files import CodeFile, SchemaFiles, checksum_of, read_schema_files
from fenceline.errors import SchemaOutdated
from fenceline.testing.databases import dsn_of

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

TIMES = 6
MORE_TIMES = 20  # for the figure
PATIENT_SECONDS = 120.0  # for a lock: only one that never comes is a failure


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> SchemaFiles:
    return read_release("0.1.0", tmp_path_factory.mktemp("0.1.0"))


@pytest.fixture(scope="module")
def released(server: str, administrator: psycopg.Connection, release: SchemaFiles) -> Iterator[str]:
    """The name of a database with the schema of 0.1.0, to be cloned."""
    name = f"fenceline_template_{uuid4().hex[:12]}"
    create_database(administrator, name)

    async def prepare() -> None:
        connection: Connection = await asyncpg.connect(dsn_of(server, name))
        try:
            await install(connection, release)
        finally:
            await connection.close()

    asyncio.run(prepare())
    yield name
    drop_database(administrator, name)


@pytest.fixture
async def connect_released(
    server: str, administrator: psycopg.Connection, released: str
) -> AsyncIterator[Callable[[], Awaitable[Connection]]]:
    """Opens connections to a database of the test's own with the schema of 0.1.0."""
    name = f"fenceline_test_{uuid4().hex[:12]}"
    create_database(administrator, name, template=released)
    connections: list[Connection] = []

    async def connect() -> Connection:
        connections.append(await asyncpg.connect(dsn_of(server, name)))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.terminate()
    drop_database(administrator, name)


async def migrate_under_traffic(dsn: str, files: SchemaFiles, lock_seconds: float) -> Traffic:
    """Migrate while 0.1.0's programs are at it, which have work to do before and after."""
    async with traffic_of(dsn, lock_seconds=lock_seconds) as traffic:
        await until(lambda: traffic.finished > 20, traffic)
        connection: Connection = await asyncpg.connect(dsn)
        try:
            await migrate(connection, files=files)
        finally:
            await connection.close()
        calls, finished = traffic.calls, traffic.finished
        await until(lambda: traffic.calls > calls + 100 and traffic.finished > finished + 20, traffic)
    return traffic


@pytest.mark.timeout(600)
def test_nothing_fails_while_the_schema_is_migrated(
    server: str, administrator: psycopg.Connection, released: str
) -> None:
    """From 0.1.0 to today's schema, and to one that is as awkward as can be."""
    for traffic in migrations_under_traffic(server, administrator, released, PATIENT_SECONDS, TIMES):
        assert traffic.failures == []


@pytest.mark.timing
@pytest.mark.timeout(600)
def test_nobody_waits_long_while_the_schema_is_migrated(
    server: str, administrator: psycopg.Connection, released: str, figures: Figures
) -> None:
    """A wait of a second for a lock would be a failure."""
    everything = list(migrations_under_traffic(server, administrator, released, 1.0, MORE_TIMES))
    slowest = max(traffic.slowest for traffic in everything)
    print(f"the slowest call took {slowest[0] * 1000:.0f} ms: {slowest[1]}")  # noqa: T201 - shown by `pytest -s`
    failures = [failure for traffic in everything for failure in traffic.failures]
    figures.at_most("calls that waited a second for a lock", len(failures), 0, "calls")


def migrations_under_traffic(
    server: str, administrator: psycopg.Connection, released: str, lock_seconds: float, times: int
) -> Iterator[Traffic]:
    for files in (read_schema_files(), awkward()) * (times // 2):
        name = f"fenceline_test_{uuid4().hex[:12]}"
        create_database(administrator, name, template=released)
        try:
            traffic = asyncio.run(migrate_under_traffic(dsn_of(server, name), files, lock_seconds))
        finally:
            drop_database(administrator, name)
        yield traffic


async def test_a_migration_that_breaks_off_anywhere_is_finished_by_the_next(
    connect_released: Callable[[], Awaitable[Connection]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two steps programs of 0.1.0 work, and those of the new release say what to do."""
    connection, old = await connect_released(), await connect_released()
    files = awkward()

    async def stop(_connection: Connection) -> None:
        raise ConnectionResetError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("fenceline.database.migrate.wait_for_calls", stop)
        # After each migration; then between the halves of a change of shapes, and there once more.
        for _ in range(files.number - MIGRATIONS["0.1.0"] + 2):
            with pytest.raises(ConnectionResetError):
                await migrate(connection, files=files)
            with pytest.raises(SchemaOutdated, match="run `fenceline migrate`"):
                await check_schema(old, files=files)
            traffic = await work_once(old)
            assert (traffic.failures, traffic.finished) == ([], 1)
    report = await migrate(connection, files=files)
    assert report.applied == ()
    assert report.code_applied
    await check_schema(old, files=files)
    assert (await work_once(old)).failures == []


async def test_an_upgrade_gives_what_a_fresh_install_gives(
    connect_released: Callable[[], Awaitable[Connection]],
    connect: Connect,
    read_catalogue: Callable[[Connection], Awaitable[list[str]]],
) -> None:
    upgraded = await connect_released()
    await migrate(upgraded)
    await migrate(upgraded, keep_seconds=0)
    assert await read_catalogue(upgraded) == await read_catalogue(await connect())


async def test_programs_of_the_release_before_find_what_they_call(
    connect_released: Callable[[], Awaitable[Connection]], connect: Connect, release: SchemaFiles
) -> None:
    """The functions that a role of 0.1.0 may call have the names, parameters and results that they had, and its views
    the columns. Another shape needs a function of another name; see "Live migration" in sql/README.md.
    """
    public = [file.name for file in release.code if file.roles]
    before, now = await connect_released(), await connect()
    functions = """
        select format('%I(%s) returns %s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid)) as line
        from pg_proc where pronamespace = 'fenceline'::regnamespace and proname = any ($1::text[]) order by line
    """
    columns = """
        select c.relname as name, array_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
                                            order by a.attnum) as columns
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relnamespace = 'fenceline'::regnamespace and c.relkind = 'v' and c.relname = any ($1::text[])
        group by c.relname
    """
    was = [row["line"] for row in await before.fetch(functions, public)]
    assert was
    assert [row["line"] for row in await now.fetch(functions, public)] == was
    views = {row["name"]: row["columns"] for row in await now.fetch(columns, public)}
    for row in await before.fetch(columns, public):
        assert views[row["name"]][: len(row["columns"])] == row["columns"], row["name"]


async def test_rows_are_inserted_column_by_column(connect: Connect) -> None:
    """`select v.*` of a row variable fails when the table gains a column after the variable was filled."""
    connection = await connect()
    rows = await connection.fetch(
        r"select proname from pg_proc where pronamespace = 'fenceline'::regnamespace and prosrc ~ '\m[pv]_\w+\.\*'"
    )
    assert [row["proname"] for row in rows] == []
    body = await connection.fetchval("select prosrc from pg_proc where proname = 'write_gated_jobs'")
    found = re.search(r"insert into fenceline\.job \((.*?)\)", body, re.DOTALL)
    assert found is not None
    columns = await connection.fetch(
        "select attname from pg_attribute where attrelid = 'fenceline.job'::regclass and attnum > 0 "
        "and not attisdropped order by attnum"
    )
    assert re.split(r",\s*", found[1]) == [row["attname"] for row in columns]


def awkward() -> SchemaFiles:
    """Today's schema and everything that is hard to change under load: columns of hot tables, a function's result and
    its parameters' names, another parameter, a view's columns, a function that is gone.
    """
    files = read_schema_files()
    tables = ("job", "ready", "running", "history", "setting")
    number = files.number
    migrations = list(files.migrations)
    for table in tables:
        number += 1
        text = f"-- compatible_from: 1\nalter table fenceline.{table} add column awkward integer default 7;\n"
        migrations.append(
            dataclasses.replace(
                files.migrations[-1],
                number=number,
                name=f"{number:04}_pre_{table}",
                text=text,
                checksum=checksum_of(text),
            )
        )
    return dataclasses.replace(files, migrations=tuple(migrations), code=tuple(_reshaped(files.code)))


# is_gated, which every enqueue asks, answers 0 or 1; key_lock's parameters have other names; wake has a parameter more
# and is_erased is gone; aged_seq has a parameter more that need not be given; the view jobs has a column more.
CHANGES = (
    (r"(function fenceline\.is_gated\(p_job fenceline\.job\)) returns boolean", r"\1 returns integer"),
    (r"select (p_job\.run_at is not null or .*?);\n", r"select case when \1 then 1 else 0 end;\n"),
    (r"not fenceline\.is_gated\(v_job\)", "fenceline.is_gated(v_job) = 0"),
    (r"fenceline\.key_lock\(p_tenant text, p_key text\)", "fenceline.key_lock(p_of text, p_name text)"),
    (r"hashtext\(p_tenant \|\| '/' \|\| p_key\)", "hashtext(p_of || '/' || p_name)"),
    (r"function fenceline\.wake\(p_lanes text\[\]\)", "function fenceline.wake(p_lanes text[], p_why text)"),
    (r"perform fenceline\.wake\((array\[[\w.]+\]|\w+)\)", r"perform fenceline.wake(\1, 'because')"),
    (
        r"(fenceline\.aged_seq\(p_seq bigint, p_priority integer, p_ageing_seconds integer)\)",
        r"\1, p_more integer default 0)",
    ),
    (r"fenceline\.is_erased\b", "fenceline.is_erased_now"),
    (r"(create or replace view fenceline\.jobs as\n)(.*);\n", r"\1select v.*, 7 as awkward from (\2) v;\n"),
)


def _reshaped(code: tuple[CodeFile, ...]) -> Iterator[CodeFile]:
    for file in code:
        text = file.text
        for pattern, replacement in CHANGES:
            text = re.sub(pattern, replacement, text, flags=re.DOTALL)
        name = "is_erased_now" if file.name == "is_erased" else file.name
        yield dataclasses.replace(file, name=name, text=text, path=file.path.replace(file.name, name))
