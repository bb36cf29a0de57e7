"""Brings the privileges in a database to what the files say, touching only what differs.

Every statement rewrites a row of the catalogue and makes all sessions read it again, so nothing is revoked and granted
anew for good measure. What was set aside keeps what it had: it is there for programs of the release before.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fenceline.database.definitions import Connection
from fenceline.database.retire import is_retired
from fenceline.database.schema_files import ROLES, SchemaFiles

# An empty acl means the default, which for functions is PUBLIC; grantee 0 is PUBLIC.
_OBJECTS = """
select o.kind, o.name, o.identity, o.note,
       coalesce(array_agg(a.privilege_type || ' ' || case a.grantee when 0 then 'public'
                                                     else pg_get_userbyid(a.grantee)::text end)
                filter (where a.grantee is not null), '{}') as granted
from (
  select 'schema' as kind, 'fenceline' as name, 'fenceline' as identity, null as note, nspowner as owner,
         coalesce(nspacl, acldefault('n', nspowner)) as acl
  from pg_namespace where nspname = 'fenceline'
  union all
  select case relkind when 'S' then 'sequence' else 'table' end, relname::text, oid::regclass::text,
         obj_description(oid, 'pg_class'), relowner,
         coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))
  from pg_class where relnamespace = 'fenceline'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
  union all
  select 'routine', proname::text, oid::regprocedure::text, obj_description(oid, 'pg_proc'), proowner,
         coalesce(proacl, acldefault('f', proowner))
  from pg_proc where pronamespace = 'fenceline'::regnamespace
) o left join lateral aclexplode(o.acl) a on a.grantee <> o.owner
group by o.kind, o.name, o.identity, o.note
order by o.kind, o.identity
"""


@dataclass(frozen=True, slots=True)
class _Object:
    kind: str
    name: str
    identity: str
    note: str | None
    granted: list[str]


async def change_grants(connection: Connection, files: SchemaFiles) -> None:
    """As the schema's owner, whose grants they are."""
    missing = await missing_roles(connection, files)
    roles = [files.role_name(role) for role in ROLES if role not in missing]
    wanted = _wanted(files)
    for row in await connection.fetch(_OBJECTS):
        for statement in _changes(_Object(**row), wanted, roles):
            await connection.execute(statement)


async def missing_roles(connection: Connection, files: SchemaFiles) -> list[str]:
    names = [files.role_name(role) for role in ROLES]
    found = await connection.fetch("select rolname::text from pg_roles where rolname = any ($1::text[])", names)
    there = {row["rolname"] for row in found}
    return [role for role in ROLES if files.role_name(role) not in there]


def _wanted(files: SchemaFiles) -> dict[tuple[str, str], list[str]]:
    """What is to be granted, per kind and name."""
    wanted = {("schema", "fenceline"): [f"USAGE {files.role_name(role)}" for role in ROLES]}
    for file in files.code:
        key = ("table" if file.kind == "view" else "routine", file.name)
        privilege = "SELECT" if file.kind == "view" else "EXECUTE"
        wanted[key] = [f"{privilege} {files.role_name(role)}" for role in file.roles]
    return wanted


def _changes(found: _Object, wanted: dict[tuple[str, str], list[str]], roles: list[str]) -> Iterator[str]:
    retired = is_retired(found.note)
    target = f"{found.kind} {found.identity}"
    here = [] if retired else wanted.get((found.kind, found.name), [])
    for grant in found.granted:
        privilege, _, grantee = grant.partition(" ")
        ours = grantee == "public" or (grantee in roles and not retired)
        if ours and grant not in here:
            yield f"revoke {privilege} on {target} from {grantee}"
    for grant in here:
        privilege, _, grantee = grant.partition(" ")
        if grantee in roles and grant not in found.granted:
            yield f"grant {privilege} on {target} to {grantee}"
