"""Checks of the schema: whether it is there and unchanged, and whether the roles, and nobody else, may use it."""

from collections.abc import AsyncIterator

from fenceline.database.definitions import Connection
from fenceline.database.retire import is_retired
from fenceline.database.schema_files import ROLES, read_schema_files
from fenceline.database.schema_state import check_schema
from fenceline.doctor.finding import Finding, Limits
from fenceline.errors import SchemaForbidden, SchemaMissing, SchemaOutdated, SchemaTooNew

AGAIN = "as the schema's owner: `delete from fenceline.code`, then `fenceline migrate`, which puts all in place anew"


async def check_schema_version(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    try:
        await check_schema(connection)
    except (SchemaMissing, SchemaOutdated, SchemaTooNew, SchemaForbidden) as error:
        what, _, do = str(error).partition(": ")
        yield Finding(check="schema", subject="fenceline", what=what, do=do or "run `fenceline migrate`")


async def check_functions(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    """Whether the functions in the database are those of this version, word for word."""
    files = read_schema_files()
    if await connection.fetchval("select number from fenceline.schema_version()") != files.number:
        return  # another version has other functions
    rows = await connection.fetch(
        "select proname::text as name, prosrc, obj_description(oid, 'pg_proc') as note from pg_proc "
        "where pronamespace = 'fenceline'::regnamespace"
    )
    found = {row["name"]: row["prosrc"] for row in rows if not is_retired(row["note"])}
    wanted = {file.name: file.text.split("$$")[1] for file in files.code if file.kind == "function"}
    for name in sorted(wanted):
        if found.get(name) != wanted[name]:
            what = "the function was changed in the database" if name in found else "the function is missing"
            yield Finding(check="functions", subject=name, what=what, do=AGAIN)


async def check_roles(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    files = read_schema_files()
    names = [files.role_name(role) for role in ROLES]
    rows = await connection.fetch("select rolname::text from pg_roles where rolname = any ($1::text[])", names)
    there = {row["rolname"] for row in rows}
    missing = [name for name in names if name not in there]
    if missing:
        yield Finding(
            level="problem" if there else "notice",
            check="roles",
            subject=", ".join(missing),
            what="the database roles do not exist: everybody works with the rights of the schema's owner",
            do="run `fenceline migrate`: it creates them, or prints what an administrator must run",
        )
    privileges = """
        select p.proname::text as name, has_function_privilege($1::text, p.oid, 'execute') as granted
        from pg_proc p where p.pronamespace = 'fenceline'::regnamespace
        union all
        select c.relname::text, has_table_privilege($1::text, c.oid, 'select')
        from pg_class c where c.relnamespace = 'fenceline'::regnamespace and c.relkind in ('r', 'p', 'v')
    """
    for role in ROLES:
        name = files.role_name(role)
        if name not in there:
            continue
        granted = {row["name"] for row in await connection.fetch(privileges, name) if row["granted"]}
        lacks = sorted({file.name for file in files.code if role in file.roles} - granted)
        if lacks:
            yield Finding(check="grants", subject=name, what=f"the role lacks {_several(lacks)}", do=AGAIN)
    public = sorted({row["name"] for row in await connection.fetch(privileges, "public") if row["granted"]})
    if public:
        yield Finding(check="grants", subject="PUBLIC", what=f"everybody may use {_several(public)}", do=AGAIN)


def _several(names: list[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
