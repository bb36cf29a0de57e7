"""The catalogue test of the security model, and how roles come about."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from tests.support.patience import eventually, seconds_left

from fenceline.database.migrate import check_schema, migrate
from fenceline.database.schema_files import ROLES, SchemaFiles, read_schema_files
from fenceline.errors import SchemaForbidden

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[], Awaitable[Connection]]
WithOwnRoles: TypeAlias = Callable[[SchemaFiles], SchemaFiles]

# Grantee 0 is PUBLIC. An empty acl means the default, which for functions is PUBLIC.
GRANTED = """
select coalesce(nullif(pg_get_userbyid(acl.grantee), 'unknown (OID=0)'), 'PUBLIC') as role,
       object.name, acl.privilege_type as privilege
from (
  select 'schema' as name, nspowner as owner, coalesce(nspacl, acldefault('n', nspowner)) as acl
  from pg_namespace where nspname = 'fenceline'
  union all
  select relname, relowner,
         coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))
  from pg_class where relnamespace = 'fenceline'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
  union all
  select proname, proowner, coalesce(proacl, acldefault('f', proowner))
  from pg_proc where pronamespace = 'fenceline'::regnamespace
) as object, aclexplode(object.acl) as acl
where acl.grantee <> object.owner
"""


@pytest.fixture
async def connection(database: str) -> AsyncIterator[Connection]:
    opened: Connection = await asyncpg.connect(database)
    yield opened
    await opened.close()


async def granted(connection: Connection) -> dict[str, set[tuple[str, str]]]:
    by_role: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in await connection.fetch(GRANTED):
        by_role[row["role"]].add((row["name"], row["privilege"]))
    return by_role


def expected(files: SchemaFiles) -> dict[str, set[tuple[str, str]]]:
    return {
        files.role_name(role): {("schema", "USAGE")}
        | {(file.name, "SELECT" if file.kind == "view" else "EXECUTE") for file in files.code if role in file.roles}
        for role in ROLES
    }


async def test_each_role_has_what_the_headers_say_and_public_nothing(connection: Connection) -> None:
    assert await granted(connection) == expected(read_schema_files())


async def test_functions_others_may_call_are_safe_to_call(connection: Connection) -> None:
    """They run with their owner's rights under a pinned search_path; or are pure, and need no rights."""
    functions = await connection.fetch(
        """
        select p.proname as name, p.prosecdef as definer, p.provolatile = 'i' as immutable, p.prosrc as body,
               (select substr(setting, 13) from unnest(p.proconfig) setting
                where setting like 'search_path=%') as search_path
        from pg_proc p where p.pronamespace = 'fenceline'::regnamespace
        """
    )
    tables = await connection.fetch(
        "select relname from pg_class "
        "where relnamespace = 'fenceline'::regnamespace and relkind in ('r', 'p', 'v', 'S')"
    )
    callable_names = {name for grants in (await granted(connection)).values() for name, _ in grants}
    for function in functions:
        if function["definer"]:
            assert function["search_path"] == "pg_catalog, pg_temp", function["name"]
        elif function["name"] in callable_names:
            assert function["immutable"], f"{function['name']} must be security definer, or immutable"
            for table in tables:
                used = re.search(rf"\bfenceline\.{table['relname']}\b(?!\()", function["body"])
                assert used is None, f"{function['name']} reads a table: it must be security definer"


async def test_views_can_be_read_by_those_who_may(connection: Connection) -> None:
    """PostgreSQL checks the functions in a view against the reader, not the view's owner."""
    files = read_schema_files()
    for file in files.code:
        for role in file.roles if file.kind == "view" else ():
            async with connection.transaction():
                await connection.execute(f"set local role {files.role_name(role)}")
                await connection.execute(f"select * from fenceline.{file.name} limit 0")


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_can_check_the_schema(connection: Connection, role: str) -> None:
    await connection.execute(f"set role {read_schema_files().role_name(role)}")
    await check_schema(connection)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("select from fenceline.migration")


@pytest.fixture
async def plain_role(administrator: "psycopg.Connection[tuple[object, ...]]") -> AsyncIterator[str]:
    """A role that may create nothing but schemas where it is allowed to. Ask for it before the database."""
    name = f"fenceline_test_{uuid4().hex[:12]}"
    administrator.execute(f"create role {name}")
    yield name
    administrator.execute(f"drop role {name}")


async def test_a_stranger_is_told_what_is_missing(plain_role: str, connection: Connection) -> None:
    await connection.execute(f"set role {plain_role}")
    with pytest.raises(SchemaForbidden, match=f"role {plain_role} may not use .* fenceline_producer"):
        await check_schema(connection)


async def test_without_the_right_to_create_roles_the_administrator_is_told(
    plain_role: str, with_own_roles: WithOwnRoles, connect_empty: Connect
) -> None:
    connection, administrator = await connect_empty(), await connect_empty()
    files = with_own_roles(read_schema_files())
    name = await administrator.fetchval("select current_database()")
    await administrator.execute(f"grant create on database {name} to {plain_role}")
    await connection.execute(f"set session authorization {plain_role}")

    report = await migrate(connection, files=files)

    assert report.administrator_sql is not None
    assert report.administrator_sql in str(report)
    assert f"create role {files.role_name('worker')} nologin;" in report.administrator_sql
    await check_schema(connection, files=files)
    assert await granted(connection) == {}
    # The owner uses the queue without any role.
    assert await connection.fetchval("select fenceline.parse_public_id(fenceline.public_id(42))") == 42

    await administrator.execute(report.administrator_sql)
    assert await granted(connection) == expected(files)
    assert (await migrate(connection, files=files)).administrator_sql is None


async def test_a_role_that_comes_later_gets_its_grants(
    plain_role: str, with_own_roles: WithOwnRoles, connect_empty: Connect
) -> None:
    connection, administrator = await connect_empty(), await connect_empty()
    files = with_own_roles(read_schema_files())
    await administrator.execute(f"create schema fenceline authorization {plain_role}")
    await connection.execute(f"set session authorization {plain_role}")
    await migrate(connection, files=files)
    await administrator.execute(f"create role {files.role_name('reader')}")

    report = await migrate(connection, files=files)

    assert report.administrator_sql is not None
    assert "create role" in report.administrator_sql
    reader = files.role_name("reader")
    assert await granted(connection) == {reader: expected(files)[reader]}


async def test_one_role_owns_everything_whoever_migrates(plain_role: str, connect_empty: Connect) -> None:
    """Functions run with their owner's rights: a superuser who migrates must not lend them his."""
    administrator = await connect_empty()
    await administrator.execute(f"create schema fenceline authorization {plain_role}")
    await migrate(administrator)
    owners = await administrator.fetch(
        """
        select distinct pg_get_userbyid(owner)::text as name from (
          select proowner as owner from pg_proc where pronamespace = 'fenceline'::regnamespace
          union all select relowner from pg_class where relnamespace = 'fenceline'::regnamespace) as objects
        """
    )
    assert [row["name"] for row in owners] == [plain_role]


async def test_privileges_granted_by_hand_to_public_are_taken_back(connect_empty: Connect) -> None:
    connection = await connect_empty()
    await connection.execute("alter default privileges grant all on tables to public")
    await migrate(connection)
    assert await granted(connection) == expected(read_schema_files())


async def test_another_database_may_create_the_roles_at_the_same_moment(
    with_own_roles: WithOwnRoles, server: str, connect_empty: Connect
) -> None:
    files = with_own_roles(read_schema_files())
    migrating = await connect_empty()
    elsewhere: Connection = await asyncpg.connect(server)
    try:
        transaction = elsewhere.transaction()
        await transaction.start()
        await elsewhere.execute(f"create role {files.role_name('producer')}")
        task = asyncio.create_task(migrate(migrating, files=files, lock_timeout_seconds=seconds_left()))
        # The migrator cannot see the role yet; it meets it when it creates its own, and waits for our commit.
        waits = "select exists (select from pg_locks where pid = $1 and not granted)"
        await eventually(lambda: elsewhere.fetchval(waits, migrating.get_server_pid()), "the migrator waits")
        await transaction.commit()
        report = await task
    finally:
        elsewhere.terminate()
    assert report.administrator_sql is None
    assert await granted(migrating) == expected(files)
