"""Who may do what in the database: the SQL of roles and grants, made from the `-- roles:` lines of the files.

Roles belong to the whole cluster, and creating them is often forbidden. So every statement here runs whether
or not the roles exist, and what could not be done can be handed to an administrator as SQL.
"""

from collections.abc import Iterable

from fenceline.database.schema_files import ROLES, SchemaFiles, checksum_of


def code_checksum(files: SchemaFiles) -> str:
    """Changes when any function, view or grant changes."""
    return checksum_of("\0".join([*(f"{file.key}\0{file.text}" for file in files.code), grants_sql(files)]))


def file_checksums(files: SchemaFiles) -> dict[str, str]:
    """Key → checksum of every function and view."""
    return {file.key: checksum_of(file.text) for file in files.code}


def create_roles_sql(files: SchemaFiles) -> str:
    """Creates the roles where the current user may; each on its own, so that one failure does not undo the
    rest.

    Another database of the cluster may be creating them at this moment: that is as good as having done it
    here.
    """
    return "\n".join(
        f"""do $$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = '{files.role_name(role)}') then
    create role {files.role_name(role)} nologin;
  end if;
exception
  -- internal_error: "tuple concurrently updated"
  when duplicate_object or unique_violation or insufficient_privilege or internal_error then null;
end $$;"""
        for role in ROLES
    )


def grants_sql(files: SchemaFiles) -> str:
    """Takes everything from PUBLIC and gives each role that exists exactly what the files say."""
    revoked = "\n".join(_revoke_all("public"))
    return "\n".join([revoked, *(_if_role_exists(files.role_name(role), _role_grants(files, role)) for role in ROLES)])


def administrator_sql(files: SchemaFiles, roles: Iterable[str]) -> str:
    """What an administrator must run to complete an installation that could not create these roles."""
    return "\n".join(
        statement
        for role in roles
        for statement in (f"create role {files.role_name(role)} nologin;", *_role_grants(files, role))
    )


def _role_grants(files: SchemaFiles, role: str) -> list[str]:
    name = files.role_name(role)
    grants = [f"grant usage on schema fenceline to {name};"]
    for file in files.code:
        if role in file.roles:
            privilege = "select on" if file.kind == "view" else "execute on function"
            grants.append(f"grant {privilege} fenceline.{file.name} to {name};")
    return grants


def _revoke_all(name: str) -> list[str]:
    return [
        f"revoke all on schema fenceline from {name};",
        f"revoke all on all tables in schema fenceline from {name};",
        f"revoke all on all sequences in schema fenceline from {name};",
        f"revoke all on all routines in schema fenceline from {name};",
    ]


def _if_role_exists(name: str, statements: list[str]) -> str:
    body = "\n".join(f"    {statement}" for statement in [*_revoke_all(name), *statements])
    return f"""do $$
begin
  if exists (select from pg_catalog.pg_roles where rolname = '{name}') then
{body}
  end if;
end $$;"""
